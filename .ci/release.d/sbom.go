package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The documents are SPDX 2.3 in JSON: https://spdx.github.io/spdx-spec/v2.3.

type spdxDocument struct {
	Version      string             `json:"spdxVersion"`
	DataLicense  string             `json:"dataLicense"`
	ID           string             `json:"SPDXID"`
	Name         string             `json:"name"`
	Namespace    string             `json:"documentNamespace"`
	Creation     spdxCreation       `json:"creationInfo"`
	Packages     []spdxPackage      `json:"packages"`
	Relationship []spdxRelationship `json:"relationships"`
}

type spdxCreation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type spdxPackage struct {
	Name             string          `json:"name"`
	ID               string          `json:"SPDXID"`
	Version          string          `json:"versionInfo"`
	FileName         string          `json:"packageFileName,omitempty"`
	DownloadLocation string          `json:"downloadLocation"`
	FilesAnalyzed    bool            `json:"filesAnalyzed"`
	Checksums        []spdxChecksum  `json:"checksums,omitempty"`
	Concluded        string          `json:"licenseConcluded"`
	Declared         string          `json:"licenseDeclared"`
	Copyright        string          `json:"copyrightText"`
	Purpose          string          `json:"primaryPackagePurpose"`
	References       []spdxReference `json:"externalRefs,omitempty"`
}

type spdxChecksum struct {
	Algorithm string `json:"algorithm"`
	Value     string `json:"checksumValue"`
}

type spdxReference struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type spdxRelationship struct {
	Element string `json:"spdxElementId"`
	Type    string `json:"relationshipType"`
	Related string `json:"relatedSpdxElement"`
}

var notInID = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

func spdxID(kind, name string) string {
	return "SPDXRef-" + kind + "-" + notInID.ReplaceAllString(name, "-")
}

// product is an archive of a release.
type product struct {
	name, version, file string
	data                []byte
	created             time.Time
}

// describe returns the bill of materials of a product that contains parts.
func describe(p product, parts []part) *spdxDocument {
	sum := sha256.Sum256(p.data)
	digest := hex.EncodeToString(sum[:])
	root := spdxPackage{
		Name: "clifftop", ID: spdxID("Package", "clifftop"), Version: p.version, FileName: p.file,
		DownloadLocation: "NOASSERTION", Checksums: []spdxChecksum{{"SHA256", digest}},
		Concluded: "Apache-2.0", Declared: "Apache-2.0", Copyright: "The Clifftop authors", Purpose: "APPLICATION",
	}
	d := &spdxDocument{
		Version: "SPDX-2.3", DataLicense: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: p.name,
		Namespace: "https://spdx.org/spdxdocs/" + p.name + "-" + digest,
		Creation:  spdxCreation{p.created.UTC().Format(time.RFC3339), []string{"Tool: clifftop-release-" + p.version}},
		Packages:  []spdxPackage{root},
		Relationship: []spdxRelationship{
			{"SPDXRef-DOCUMENT", "DESCRIBES", root.ID},
		},
	}
	for _, part := range parts {
		id := spdxID("Package", part.name)
		d.Packages = append(d.Packages, spdxPackage{
			Name: part.name, ID: id, Version: part.version, DownloadLocation: "NOASSERTION",
			Concluded: expression(part.texts), Declared: expression(part.texts), Copyright: "NOASSERTION",
			Purpose:    "LIBRARY",
			References: []spdxReference{{"PACKAGE-MANAGER", "purl", part.url}},
		})
		d.Relationship = append(d.Relationship, spdxRelationship{root.ID, "CONTAINS", id})
	}
	return d
}

func (d *spdxDocument) write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(d)
}

// verifyModules compares the modules that programs record in themselves with those that the go command lists.
func verifyModules(files []string, listed map[string]*module) (goVersion string, err error) {
	recorded := map[string]bool{}
	for _, file := range files {
		info, err := buildinfo.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("%s: %w", filepath.Base(file), err)
		}
		goVersion = info.GoVersion
		for _, m := range info.Deps {
			recorded[m.Path+" "+m.Version] = true
		}
	}
	var differ []string
	for _, m := range listed {
		if name := m.Path + " " + m.Version; recorded[name] {
			delete(recorded, name)
		} else {
			differ = append(differ, name+" is not recorded")
		}
	}
	for name := range recorded {
		differ = append(differ, name+" is not listed")
	}
	if slices.Sort(differ); len(differ) > 0 {
		return "", fmt.Errorf("the modules of the programs differ from those of go list: %s",
			strings.Join(differ, ", "))
	}
	return goVersion, nil
}
