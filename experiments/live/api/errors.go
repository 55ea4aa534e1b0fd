package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"clifftop/experiments/live"
	"clifftop/sim/event"
)

// failure is an error with its HTTP status.
type failure struct {
	status  int
	param   string // the field of the request, if one is at fault
	message string
}

func (f *failure) Error() string { return f.message }

// bad is a failure because of a field of the request.
func bad(param, format string, args ...any) *failure {
	return &failure{http.StatusBadRequest, param, fmt.Sprintf(format, args...)}
}

// kinds are the types of errors, by status, under vLLM's names where it has them.
var kinds = map[int]string{
	http.StatusBadRequest:            "BadRequestError",
	http.StatusUnauthorized:          "AuthenticationError",
	http.StatusNotFound:              "NotFoundError",
	http.StatusMethodNotAllowed:      "MethodNotAllowedError",
	http.StatusRequestTimeout:        "RequestTimeoutError",
	http.StatusRequestEntityTooLarge: "RequestTooLargeError",
	http.StatusUnsupportedMediaType:  "UnsupportedMediaTypeError",
	http.StatusTooManyRequests:       "RateLimitError",
	http.StatusInternalServerError:   "InternalServerError",
	http.StatusBadGateway:            "BadGatewayError",
	http.StatusServiceUnavailable:    "ServiceUnavailableError",
}

// body returns the error in OpenAI's shape. The code is the status, as in vLLM.
func (f *failure) body() []byte {
	type info struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    int     `json:"code"`
	}
	x := info{Message: f.message, Type: kinds[f.status], Code: f.status}
	if f.param != "" {
		x.Param = &f.param
	}
	b, _ := json.Marshal(map[string]info{"error": x}) // strings and numbers have no error
	return b
}

// write sends the error as the response.
func (f *failure) write(w http.ResponseWriter) {
	switch f.status {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		w.Header().Set("Retry-After", "1")
	case http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	writeJSON(w, f.status, f.body())
}

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that has gone gets none
}

func asFailure(err error) *failure {
	if f := (*failure)(nil); errors.As(err, &f) {
		return f
	}
	return &failure{status: http.StatusInternalServerError, message: err.Error()}
}

// ended returns the failure of a request that the simulation did not complete.
func (s *Server) ended(err error) *failure {
	rec, ok := live.IsEnded(err)
	if !ok {
		return &failure{status: http.StatusServiceUnavailable, message: "the server is shutting down"}
	}
	switch rec.Outcome {
	case event.Rejected:
		switch rec.Refusal {
		case event.NeverFits:
			return bad("", "the request never fits: %d prompt tokens and up to %d output tokens exceed the maximum "+
				"context length or the KV cache of every replica", rec.Request.InputTokens, rec.Request.OutputTokens)
		case event.NotReady:
			return &failure{status: http.StatusServiceUnavailable, message: "no replica is ready"}
		}
		return &failure{status: s.busy, message: "the waiting queue is full: try again later"}
	case event.Failed:
		return &failure{status: http.StatusBadGateway, message: "the replica failed or could not be reached"}
	}
	return &failure{status: http.StatusServiceUnavailable, message: "the request has ended: " + rec.Outcome.String()}
}
