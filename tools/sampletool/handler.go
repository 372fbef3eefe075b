package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/callgate/callgate/internal/oserr"
	"github.com/callgate/callgate/internal/safe"
)

// tool is one POST endpoint. run gets the body, which is at most maxBody bytes
// of valid UTF-8, and the request's context, which ends when the client leaves.
// It returns what is to be written as JSON, or an error: a *failure is answered
// as it says, every other one as 500 without detail.
type tool struct {
	path string
	run  func(ctx context.Context, body []byte) (any, error)
}

// tools is every tool that there is.
func tools(texts library, now func() time.Time) []tool {
	return []tool{
		{"/search", texts.search},
		{"/read", texts.read},
		{"/time", clock(now).tell},
		{"/slow", slow},
		{"/fail", fail},
		{"/echo", echo},
	}
}

// otherPath stands, among the hits, for every path that is no tool's.
const otherPath = "other"

// router serves the tools, and counts. Paths match byte for byte: there are no
// patterns, and nothing is cleaned or redirected.
type router struct {
	tools  map[string]http.HandlerFunc
	status map[string]http.HandlerFunc // not counted
	hits   *hits
	stderr io.Writer
}

func newHandler(tools []tool, counted *hits, stderr io.Writer) router {
	h := router{tools: map[string]http.HandlerFunc{}, hits: counted, stderr: stderr}
	for _, t := range tools {
		h.tools[t.path] = t.handler(stderr)
	}
	h.status = map[string]http.HandlerFunc{
		"/hits":    reading(func() any { return counted.report() }),
		"/healthz": reading(func() any { return map[string]bool{"ok": true} }),
	}
	return h
}

func (h router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if status, ok := h.status[r.URL.Path]; ok {
		status(w, r)
		return
	}
	path := r.URL.Path
	serve, ok := h.tools[path]
	if !ok {
		path = otherPath
	}
	id, fault := callID(r.Header)
	if err := h.hits.add(path, id); err != nil {
		fmt.Fprintf(h.stderr, "sampletool: the file of --hits: %v\n", oserr.Reason(err))
		refuse(w, failed(http.StatusServiceUnavailable, "the hit could not be written down, so nothing was done"))
		return
	}
	switch {
	case fault != nil:
		refuse(w, fault)
	case !ok:
		refuse(w, failed(http.StatusNotFound, "there is no such path"))
	default:
		serve(w, r)
	}
}

// reading answers GET.
func reading(value func() any) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			w.Header().Set("Allow", http.MethodGet)
			refuse(w, failed(http.StatusMethodNotAllowed, "found another method; expected GET"))
			return
		}
		answer(w, http.StatusOK, value())
	}
}

func (t tool) handler(stderr io.Writer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		defer safe.Catch(func(error) {
			fmt.Fprintf(stderr, "sampletool: %s panicked\n", t.path)
			refuse(w, failed(http.StatusInternalServerError, "internal"))
		})
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			refuse(w, failed(http.StatusMethodNotAllowed, "found another method; expected POST"))
			return
		}
		body, err := readBody(w, r)
		if err == nil {
			var value any
			if value, err = t.run(r.Context(), body); err == nil {
				answer(w, http.StatusOK, value)
				return
			}
		}
		var f *failure
		switch {
		case errors.As(err, &f):
			refuse(w, f)
		case r.Context().Err() != nil:
			// The client has left: nobody reads an answer.
		default:
			fmt.Fprintf(stderr, "sampletool: %s: %v\n", t.path, oserr.Reason(err))
			refuse(w, failed(http.StatusInternalServerError, "internal"))
		}
	}
}
