package api

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"slices"
	"strings"
)

// guard checks API keys, and answers web pages of other origins.
type guard struct {
	keys    [][sha256.Size]byte
	origins []string
}

func newGuard(keys, origins []string) guard {
	g := guard{origins: origins}
	for _, k := range keys {
		g.keys = append(g.keys, sha256.Sum256([]byte(k)))
	}
	return g
}

// wrap lets web pages of other origins read the responses of a handler, if they may.
func (g *guard) wrap(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !g.shared(w, r) {
			h.ServeHTTP(w, r)
		}
	})
}

// locked makes an endpoint need a key, if there are keys.
func (g *guard) locked(f endpoint) endpoint {
	if len(g.keys) == 0 {
		return f
	}
	return func(w http.ResponseWriter, r *http.Request, replica int32) error {
		if !g.knows(r.Header.Get("Authorization")) {
			return &failure{status: http.StatusUnauthorized,
				message: "the API key is missing or wrong (want a header Authorization: Bearer KEY)"}
		}
		return f(w, r, replica)
	}
}

// knows reports whether the header has one of the keys. The time that it takes does not depend on the key.
func (g *guard) knows(header string) bool {
	scheme, key, _ := strings.Cut(header, " ")
	sum := sha256.Sum256([]byte(strings.TrimSpace(key)))
	found := 0
	for i := range g.keys {
		found |= subtle.ConstantTimeCompare(sum[:], g.keys[i][:])
	}
	return found == 1 && strings.EqualFold(scheme, "Bearer")
}

// shared allows web pages of the origins in the list to read the response. It reports whether it has answered the
// request, which asked only for that.
func (g *guard) shared(w http.ResponseWriter, r *http.Request) bool {
	origin := r.Header.Get("Origin")
	if origin == "" || len(g.origins) == 0 {
		return false
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	if !slices.Contains(g.origins, "*") && !slices.Contains(g.origins, origin) {
		return false
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", RequestHeader)
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, X-Request-Id, "+OutputHeader+", "+ClassHeader)
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}
