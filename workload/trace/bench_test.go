package trace

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"testing"
	"time"
)

// azureGzip returns a trace of n rows as published: CR LF, seven decimals, gzip.
func azureGzip(b *testing.B, n int) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	fmt.Fprint(z, "TIMESTAMP,ContextTokens,GeneratedTokens\r\n")
	at := time.Date(2023, 11, 16, 18, 15, 46, 680590000, time.UTC)
	x := uint32(1)
	for range n {
		x = x*1664525 + 1013904223
		at = at.Add(time.Duration(x>>4) / 100 * 100)
		fmt.Fprintf(z, "%s,%d,%d\r\n", at.Format("2006-01-02 15:04:05.0000000"), x>>20+1, x>>8&255+1)
	}
	if err := z.Close(); err != nil {
		b.Fatal(err)
	}
	return out.Bytes()
}

// BenchmarkAzureReader reads 200,000 zipped rows.
func BenchmarkAzureReader(b *testing.B) {
	const n = 200_000
	data := azureGzip(b, n)
	b.Run("gunzip", func(b *testing.B) {
		for b.Loop() {
			z, err := gzip.NewReader(bytes.NewReader(data))
			if err != nil {
				b.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, z); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	})
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			f, err := Open(bytes.NewReader(data), "bench", Options{})
			if err != nil {
				b.Fatal(err)
			}
			s, err := Scan(f)
			if err != nil || s.Rows != n {
				b.Fatal(s.Rows, err)
			}
		}
		b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	})
}

// BenchmarkMooncakeReader reads rows of 24 blocks.
func BenchmarkMooncakeReader(b *testing.B) {
	var text bytes.Buffer
	const n = 5000
	for i := range n {
		fmt.Fprintf(&text, `{"timestamp": %d, "input_length": 12000, "output_length": 300, "hash_ids": [0`, i*300)
		for k := range 23 {
			fmt.Fprintf(&text, ", %d", i*23+k+1)
		}
		text.WriteString("]}\n")
	}
	b.SetBytes(int64(text.Len()))
	b.ReportAllocs()
	for b.Loop() {
		f, err := Open(bytes.NewReader(text.Bytes()), "bench", Options{})
		if err != nil {
			b.Fatal(err)
		}
		if s, err := Scan(f); err != nil || s.Rows != n {
			b.Fatal(s.Rows, err)
		}
	}
	b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
