package paper

import "testing"

func TestWrap(t *testing.T) {
	word := "123456789" // ten columns with its space
	line := word
	for range 12 {
		line += " " + word
	}
	table := "| " + line + " |\n"
	if got := wrap(table); got != table {
		t.Errorf("a table row changes:\n%s", got)
	}
	item := "* " + line + "\n"
	want := "* " + line[:len(line)-20] + "\n  " + word + " " + word + "\n"
	if got := wrap(item); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if short := "a b\n\n**c**\n"; wrap(short) != short {
		t.Errorf("short lines change: %q", wrap(short))
	}
}
