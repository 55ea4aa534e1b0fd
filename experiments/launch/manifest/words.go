package manifest

import (
	"encoding/json"
	"strconv"
	"strings"

	"clifftop/experiments/launch/shell"
	"clifftop/experiments/scenario/yamldoc"
)

// splitWords divides a text into words as a shell does, with quotes and backslashes, but without variables. The words
// have the lines of the text; line is its first one.
func splitWords(s string, line int) (words []shell.Word) {
	var b strings.Builder
	inWord, first := false, line
	quote := byte(0)
	end := func() {
		if inWord {
			words = append(words, shell.Word{Text: b.String(), Line: first})
		}
		b.Reset()
		inWord = false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		if !inWord {
			first = line
		}
		switch {
		case c == '\\' && quote != '\'' && i+1 < len(s):
			i++
			if s[i] == '\n' {
				line++
				continue
			}
			if quote == '"' && s[i] != '"' && s[i] != '\\' {
				b.WriteByte('\\')
			}
			b.WriteByte(s[i])
			inWord = true
		case quote != 0:
			if c == quote {
				quote = 0
			} else {
				b.WriteByte(c)
			}
		case c == '"' || c == '\'':
			quote, inWord = c, true
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			end()
		default:
			b.WriteByte(c)
			inWord = true
		}
		if c == '\n' {
			line++
		}
	}
	end()
	return words
}

// asJSON writes a value as JSON on one line. Numbers in quotes, as custom resources have them, are numbers.
func asJSON(n *yamldoc.Node) string {
	var b strings.Builder
	writeJSON(&b, n)
	return b.String()
}

func writeJSON(b *strings.Builder, n *yamldoc.Node) {
	switch n.Kind {
	case yamldoc.Map:
		b.WriteByte('{')
		for i, f := range n.Fields {
			if i > 0 {
				b.WriteByte(',')
			}
			writeText(b, f.Name)
			b.WriteByte(':')
			writeJSON(b, f.Value)
		}
		b.WriteByte('}')
	case yamldoc.List:
		b.WriteByte('[')
		for i, v := range n.Items {
			if i > 0 {
				b.WriteByte(',')
			}
			writeJSON(b, v)
		}
		b.WriteByte(']')
	case yamldoc.Bool:
		b.WriteString(strconv.FormatBool(n.Truth))
	case yamldoc.Null:
		b.WriteString("null")
	default:
		if _, err := strconv.Atoi(n.Text); err == nil || n.Kind == yamldoc.Number && json.Valid([]byte(n.Text)) {
			b.WriteString(n.Text)
			return
		}
		writeText(b, n.Text)
	}
}

func writeText(b *strings.Builder, s string) {
	var text strings.Builder
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	_ = e.Encode(s)
	b.WriteString(strings.TrimSuffix(text.String(), "\n"))
}
