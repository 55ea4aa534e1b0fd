package notices

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	row      = regexp.MustCompile(`(?m)^\| ([a-z0-9.-]+\.[a-z]+/\S+) \| (v\S+) \| (\S.*) \| [0-9, ]+ \|$`)
	required = regexp.MustCompile(`(?m)^\t(?:require )?(\S+) (v\S+)( // indirect)?$`)
)

// TestModules compares the modules of the notices with those that are linked here, and their versions with go.mod. The
// long tier of .ci/release.d compares all of the text.
func TestModules(t *testing.T) {
	versions := map[string]string{}
	for _, m := range row.FindAllStringSubmatch(Text, -1) {
		versions[m[1]] = m[2]
	}
	root := filepath.Join("..", "..")
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	wanted := map[string]string{}
	for _, m := range required.FindAllStringSubmatch(string(mod), -1) {
		wanted[m[1]] = m[2]
	}
	for path, version := range versions {
		if wanted[path] != version {
			t.Errorf("%s %s is listed, but go.mod has %q (run .ci/release notices)", path, version,
				wanted[path])
		}
	}
	list := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{if not .Main}}{{.Path}}{{end}}{{end}}",
		"./cmd/clifftop", "./cmd/clifftop-parquet")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatal("go list: ", err)
	}
	linked := strings.Fields(string(out))
	if len(linked) < 20 {
		t.Errorf("go list names %d packages of modules", len(linked))
	}
	for _, path := range linked {
		if versions[path] == "" {
			t.Errorf("%s is linked, but not listed (run .ci/release notices)", path)
			versions[path] = "missing"
		}
	}
}
