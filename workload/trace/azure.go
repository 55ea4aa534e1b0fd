package trace

// azure is the layout of the Azure LLM inference traces of 2023, 2024 and 2025: CSV with the columns TIMESTAMP,
// ContextTokens, GeneratedTokens and, in 2025, NumImages. Timestamps are calendar times with or without fraction
// and zone, also mixed in one file; arrivals count from the first row. With NumImages, requests have the class text
// or image. ContextTokens seems to include the image tokens, because prompts with images are longer.
type azure struct {
	header
	classTable
	stamps                      stamps
	time, input, output, images int
}

func azureFormat() format {
	return format{
		Format: Format{"azure", "CSV: TIMESTAMP,ContextTokens,GeneratedTokens and optionally NumImages",
			"https://github.com/Azure/AzurePublicDataset"},
		need:     [][]string{{"timestamp", "contexttokens", "generatedtokens"}},
		may:      []string{"numimages"},
		absolute: true,
		columns: func(_ *File, h header) layout {
			return &azure{
				header: h, time: h.index("timestamp"), input: h.index("contexttokens"),
				output: h.index("generatedtokens"), images: h.index("numimages"),
			}
		},
	}
}

func (a *azure) parse(line []byte, r *Row, t *instant) (f *fault) {
	if f := a.split(line); f != nil {
		return f
	}
	if *t, f = a.stamps.parse(a.fields[a.time]); f != nil {
		return f
	}
	if f = a.lengths(r, a.input, a.output); f != nil || a.images < 0 {
		return f
	}
	images, f := count(a.fields[a.images], a.limit)
	if f != nil {
		f.want = "a number of images"
		return f
	}
	kind := "text"
	if images > 0 {
		kind = "image"
	}
	r.Class, f = a.of([]byte(kind))
	return f
}
