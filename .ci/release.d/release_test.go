package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"clifftop/internal/notices"
	"clifftop/internal/testenv"
)

// TestMain runs the tests in the folder of the module whose release this is.
func TestMain(m *testing.M) {
	if err := os.Chdir("../.."); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func TestIdentify(t *testing.T) {
	uPlot, err := uPlotPart()
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile("LICENSE")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		uPlot.texts[0].text:    "MIT",
		string(own):            "Apache-2.0",
		"All rights reserved.": "",
		"Redistribution and use in source\nand binary forms":                            "BSD-2-Clause",
		"Redistribution and use in source and binary forms ...\n* Neither the\nname of": "BSD-3-Clause",
		string(own) + uPlot.texts[0].text:                                               "Apache-2.0 MIT",
	} {
		if got := strings.Join(identify(text), " "); got != want {
			t.Errorf("%.40q… is %q, want %q", text, got, want)
		}
	}
}

// TestLicences checks that every linked module has a known licence.
func TestLicences(t *testing.T) {
	here, err := linked(target{runtime.GOOS, runtime.GOARCH}, programs...)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"github.com/golang/freetype":       "FTL",
		"github.com/spf13/cobra":           "Apache-2.0",
		"codeberg.org/go-fonts/liberation": "BSD-3-Clause AND OFL-1.1",
	} {
		if here[path] == nil {
			t.Errorf("%s is not linked", path)
		} else if texts, err := here[path].licences(); err != nil || expression(texts) != want {
			t.Errorf("%s has %q (%v), want %q", path, expression(texts), err, want)
		}
	}
	for _, m := range here {
		if _, err := m.licences(); err != nil {
			t.Error(err)
		}
	}
	strange := &module{Path: "example.org/strange", Dir: t.TempDir()}
	if _, err := strange.licences(); err == nil || !strings.Contains(err.Error(), "no licence in") {
		t.Errorf("a module without a licence: %v", err)
	}
}

// TestNotices generates the notices and compares them with the committed ones.
func TestNotices(t *testing.T) {
	testenv.NeedsLong(t, "the notices are not generated again")
	var b bytes.Buffer
	if err := generateNotices(&b); err != nil {
		t.Fatal(err)
	}
	if b.String() != notices.Text {
		t.Error("internal/notices/THIRD_PARTY_NOTICES.md is out of date (run .ci/release notices)")
	}
}

var members = []file{
	{"b.txt", 0o644, []byte("two\n")},
	{"a", 0o755, bytes.Repeat([]byte("one\n"), 1000)},
}

// TestPack: the same files in another order give the same archive. Its members have the requested time and modes, and
// contain nothing that depends on the machine.
func TestPack(t *testing.T) {
	at := time.Unix(1_700_000_001, 0)
	for _, windows := range []bool{false, true} {
		data, err := pack("x-1", members, at, windows)
		if err != nil {
			t.Fatal(err)
		}
		again, err := pack("x-1", []file{members[1], members[0]}, at.In(time.FixedZone("far", 5*3600)), windows)
		if err != nil || !bytes.Equal(data, again) {
			t.Errorf("windows %v: the order of files changes the archive (%v)", windows, err)
		}
		got := unpack(t, data, windows)
		want := []string{"x-1/a -rwxr-xr-x 4000 1700000000", "x-1/b.txt -rw-r--r-- 4 1700000000"}
		if !slices.Equal(got, want) {
			t.Errorf("windows %v: %q, want %q", windows, got, want)
		}
	}
}

// unpack lists the members of an archive.
func unpack(t *testing.T, data []byte, windows bool) (list []string) {
	t.Helper()
	add := func(info os.FileInfo, name string) {
		list = append(list, fmt.Sprint(name, " ", info.Mode(), " ", info.Size(), " ", info.ModTime().Unix()))
	}
	if windows {
		z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range z.File {
			add(f.FileInfo(), f.Name)
		}
		return list
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if !z.ModTime.IsZero() || z.Name != "" {
		t.Errorf("gzip header: %q, %v", z.Name, z.ModTime)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		if h.Uname+h.Gname != "" || h.Uid+h.Gid != 0 {
			t.Errorf("%s has an owner", h.Name)
		}
		add(h.FileInfo(), h.Name)
	}
}

var (
	idSyntax        = regexp.MustCompile(`^SPDXRef-[A-Za-z0-9.-]+$`)
	namespaceSyntax = regexp.MustCompile(`^https://spdx\.org/spdxdocs/[a-z0-9.-]+-[0-9a-f]{64}$`)
	purlSyntax      = regexp.MustCompile(`^pkg:(golang|npm)/[^@ ]+@[^@ ]+$`)
	licenceSyntax   = regexp.MustCompile(
		`^(Apache-2\.0|BSD-[23]-Clause|CC-BY-4\.0|FTL|MIT)( AND (BSD-3-Clause|MIT|OFL-1\.1))*$`)
)

// TestDescribe checks what SPDX 2.3 requires of a document: its fields, unique identifiers, and relationships between
// elements that exist.
func TestDescribe(t *testing.T) {
	modules, err := linked(target{runtime.GOOS, runtime.GOARCH}, programs...)
	if err != nil {
		t.Fatal(err)
	}
	var list []*module
	for _, m := range modules {
		list = append(list, m)
	}
	parts, err := partsOf("go1.26.0", list)
	if err != nil {
		t.Fatal(err)
	}
	const name = "clifftop-1.2.3-linux-amd64"
	p := product{name, "1.2.3", name + ".tar.gz", []byte("archive"), time.Unix(1_700_000_000, 0)}
	var b bytes.Buffer
	if err := describe(p, parts).write(&b); err != nil {
		t.Fatal(err)
	}
	var d spdxDocument
	decoder := json.NewDecoder(&b)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil {
		t.Fatal(err)
	}
	if d.Version != "SPDX-2.3" || d.DataLicense != "CC0-1.0" || d.ID != "SPDXRef-DOCUMENT" ||
		d.Name != p.name || !namespaceSyntax.MatchString(d.Namespace) {
		t.Errorf("the document is %q %q %q %q %q", d.Version, d.DataLicense, d.ID, d.Name, d.Namespace)
	}
	if d.Creation.Created != "2023-11-14T22:13:20Z" || len(d.Creation.Creators) != 1 ||
		!strings.HasPrefix(d.Creation.Creators[0], "Tool: ") {
		t.Errorf("created %+v", d.Creation)
	}
	if len(d.Packages) != len(modules)+3 { // and Clifftop, Go, uPlot
		t.Errorf("%d packages for %d modules", len(d.Packages), len(modules))
	}
	elements := map[string]bool{d.ID: true}
	for i, p := range d.Packages {
		if elements[p.ID] || !idSyntax.MatchString(p.ID) {
			t.Errorf("%s: the identifier %q is wrong or not unique", p.Name, p.ID)
		}
		elements[p.ID] = true
		if p.Name == "" || p.Version == "" || p.DownloadLocation == "" || p.Copyright == "" || p.FilesAnalyzed ||
			!licenceSyntax.MatchString(p.Declared) || p.Concluded != p.Declared {
			t.Errorf("%+v", p)
		}
		if i > 0 && (len(p.References) != 1 || !purlSyntax.MatchString(p.References[0].Locator)) {
			t.Errorf("%s: %+v", p.Name, p.References)
		}
	}
	related := map[string]bool{}
	for _, r := range d.Relationship {
		if !elements[r.Element] || !elements[r.Related] || r.Type != "DESCRIBES" && r.Type != "CONTAINS" {
			t.Errorf("%+v", r)
		}
		related[r.Related] = true
	}
	if len(related) != len(d.Packages) {
		t.Errorf("%d of %d packages are related", len(related), len(d.Packages))
	}
}

func TestSums(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"b": "", "a": "abc"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const want = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a\n" +
		"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  b\n"
	for range 2 { // the file does not sum up itself
		if err := writeSums(dir); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(filepath.Join(dir, sums)); err != nil || string(got) != want {
			t.Errorf("%s, %v", got, err)
		}
	}
}

func TestRun(t *testing.T) {
	for want, args := range map[string][]string{
		`["tin"] is unknown (want notices, or nothing)`:   {"tin"},
		`-targets: "plan9/amd64" is unknown (want linux/`: {"-targets", "linux/amd64,plan9/amd64"},
	} {
		if err := run(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", args, err, want)
		}
	}
}
