package shell_test

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"clifftop/experiments/launch/shell"
)

// TestRun gives scripts and the commands that they start: arguments, with lines where they differ, and variables.
func TestRun(t *testing.T) {
	for _, c := range []struct {
		name, script string
		env          map[string]string
		want         []string
	}{
		{"continued lines and comments", "# serve\nvllm serve m \\\n  --tp 2 # two\n", nil,
			[]string{"2: vllm serve m --tp:3 2:3"}},
		{"conditions and defaults", "TP=${TP:-8}\nif [[ $TP -eq 8 ]]; then N=30; else N=10; fi\nserve --tp $TP --n $N",
			nil, []string{"3: serve --tp 8 --n 30"}},
		{"given variables", "serve --tp $TP", map[string]string{"TP": "4"}, []string{"1: serve --tp 4 TP=4"}},
		{"a variable without a value", "serve --tp $TP", nil, []string{"1: serve --tp ${TP}"}},
		{"exported variables", "export A=1\nB=2 serve\nC=3\nserve", nil, []string{"2: serve A=1 B=2", "4: serve A=1"}},
		{"exec and background", "serve a &\nexec serve b", nil, []string{"1: serve a", "2: serve b"}},
		{"arithmetic", "serve $(( (3*64+1024+63)/64*64 ))", nil, []string{"1: serve 1216"}},
		{"functions and loops", "f() { serve $1; }\nfor i in 1 2; do f $i; done", nil, []string{"1: serve 1", "1: serve 2"}},
		{"a loop that waits for a server", "until curl -s x; do sleep 1; done\nserve", nil, []string{"2: serve"}},
		{"a loop without an end", "while :; do :; done\nserve", nil, nil},
		{"the words of a variable", "ARGS=\"--tp 2\"\nserve $ARGS", nil, []string{"2: serve --tp 2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := shell.Run("a.sh", []byte(c.script), shell.Options{Env: c.env})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, k := range r.Commands {
				line := fmt.Sprintf("%d:", k.Line)
				for _, w := range k.Args {
					line += " " + w.Text
					if w.Line != k.Line {
						line += fmt.Sprintf(":%d", w.Line)
					}
				}
				for _, v := range k.Env {
					line += " " + v.Name + "=" + v.Value
				}
				got = append(got, line)
			}
			if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// TestFiles: what a script writes is kept in memory, and what stands beside it is read.
func TestFiles(t *testing.T) {
	script := "N=3\ncat > a.yaml << EOF\nx: ${N}\nEOF\necho 'y: 1' >> a.yaml\n. ./env.sh\nserve $MODEL --config a.yaml"
	r, err := shell.Run("a.sh", []byte(script), shell.Options{Read: func(name string) ([]byte, error) {
		if name == "env.sh" {
			return []byte("MODEL=m"), nil
		}
		return nil, fs.ErrNotExist
	}})
	if err != nil {
		t.Fatal(err)
	}
	if data, ok := r.File("./a.yaml"); !ok || string(data) != "x: 3\ny: 1\n" {
		t.Errorf("a.yaml is %q", data)
	}
	if len(r.Commands) != 1 || r.Commands[0].Args[1].Text != "m" {
		t.Errorf("%+v", r.Commands)
	}
}

// TestSyntax: a script that is none gives the place.
func TestSyntax(t *testing.T) {
	_, err := shell.Run("a.sh", []byte("serve 'x"), shell.Options{})
	if err == nil || !strings.HasPrefix(err.Error(), "a.sh:1:7: ") {
		t.Errorf("%v", err)
	}
}
