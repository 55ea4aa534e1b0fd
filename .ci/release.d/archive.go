package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// file is a member of an archive.
type file struct {
	name string // with slashes
	mode fs.FileMode
	data []byte
}

// pack returns an archive of files in one folder. The bytes depend on its arguments alone: members are sorted, have the
// same time, and no owner. The format is zip if the archive is for Windows, and tar with gzip otherwise.
func pack(folder string, files []file, at time.Time, windows bool) ([]byte, error) {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	at = at.UTC().Truncate(2 * time.Second) // the resolution of zip
	var b bytes.Buffer
	err := packTar(&b, folder, files, at)
	if windows {
		b.Reset()
		err = packZip(&b, folder, files, at)
	}
	return b.Bytes(), err
}

func packTar(w io.Writer, folder string, files []file, at time.Time) error {
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	for _, f := range files {
		h := &tar.Header{
			Typeflag: tar.TypeReg, Name: path.Join(folder, f.name), Mode: int64(f.mode), Size: int64(len(f.data)),
			ModTime: at,
			Format:  tar.FormatUSTAR,
		}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(f.data); err != nil {
			return err
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	return z.Close()
}

func packZip(w io.Writer, folder string, files []file, at time.Time) error {
	z := zip.NewWriter(w)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestCompression)
	})
	for _, f := range files {
		h := &zip.FileHeader{Name: path.Join(folder, f.name), Method: zip.Deflate, Modified: at}
		h.SetMode(f.mode)
		member, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := member.Write(f.data); err != nil {
			return err
		}
	}
	return z.Close()
}
