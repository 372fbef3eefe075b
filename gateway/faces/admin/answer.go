package admin

import (
	"net/http"
	"strconv"

	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/wrapper"
)

// setHeaders sets the headers of every answer: no cache keeps it, and no browser takes it for
// a page.
func setHeaders(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
}

// write writes a value as one line of JSON in which nothing hides.
func (a *API) write(w http.ResponseWriter, status int, answer any) {
	body, err := wrapper.Marshal(answer)
	if err != nil {
		a.options.Log.Error("an answer of the admin API could not be encoded", "cause", err.Error())
		a.refuse(w, refusal.New(refusal.Internal, "The gateway could not answer this. The reason is in its log."))
		return
	}
	a.writeLine(w, status, body)
}

func (a *API) writeLine(w http.ResponseWriter, status int, line []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(len(line)+1))
	w.WriteHeader(status)
	if _, err := w.Write(append(line, '\n')); err != nil {
		a.options.Log.Debug("a client of the admin API left", "cause", err.Error())
	}
}

// refuse answers in the shape of the native face.
func (a *API) refuse(w http.ResponseWriter, refused *refusal.Error) {
	h := w.Header()
	if refused.Code == refusal.Unauthenticated {
		h.Set("WWW-Authenticate", "Bearer")
	}
	if refused.RetryAfterMS > 0 {
		h.Set("Retry-After", strconv.FormatInt((refused.RetryAfterMS+999)/1000, 10))
	}
	result, err := wrapper.Refusal(nil, refused)
	if err != nil {
		result.Line = []byte(`{}`) // a refusal always encodes: it holds text and numbers
	}
	a.writeLine(w, refused.Status(), result.Line)
}
