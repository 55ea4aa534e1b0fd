package monitor

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"strings"

	"clifftop/report/page/assets"
)

//go:embed page.html
var layoutText string

//go:embed page.css
var styles string

//go:embed batch.js
var batchScript string

//go:embed page.js
var script string

// Page returns the handler of the page at /. It is one file, and takes its data from [EventsPattern]. It begins with
// the batch of a replica, from 0; if the replica is negative, of the first.
func (m *Monitor) Page(replica int) http.Handler {
	style, code := assets.Styles()+styles, assets.Scripts()+batchScript+script
	layout := template.Must(template.New("page").Parse(layoutText))
	var b strings.Builder
	err := layout.Execute(&b, struct {
		Title, Version, Licence string
		Replica                 int
		Style, Script           template.HTML
	}{m.about.Title, m.about.Version, assets.Licence(), max(0, replica), template.HTML("<style>" + style + "</style>"),
		template.HTML("<script>" + code + "</script>")})
	text := []byte(b.String())
	policy := fmt.Sprintf("default-src 'none'; style-src %s; script-src %s; connect-src 'self'; base-uri 'none'; "+
		"form-action 'none'; frame-ancestors 'none'", hashed(style), hashed(code))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err != nil {
			http.Error(w, "the page cannot be made", http.StatusInternalServerError)
			return
		}
		h := w.Header()
		h.Set("Content-Type", "text/html; charset=utf-8")
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		_, _ = w.Write(text)
	})
}

// hashed names a script or a style sheet in a content security policy.
func hashed(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
