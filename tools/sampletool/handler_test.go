package main

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// An internal error is 500 without details; the operator reads one line.
func TestFaultsInside(t *testing.T) {
	for name, c := range map[string]struct {
		run  func(context.Context, []byte) (any, error)
		text string
	}{
		"a panic": {func(context.Context, []byte) (any, error) { panic("the secret") }, "sampletool: /act panicked\n"},
		"an error": {func(context.Context, []byte) (any, error) {
			return nil, &fs.PathError{Op: "open", Path: "/the/secret", Err: errors.New("disk")}
		}, "sampletool: /act: disk\n"},
		"what cannot be encoded": {func(context.Context, []byte) (any, error) { return make(chan int), nil }, ""},
	} {
		var output bytes.Buffer
		h := newHandler([]tool{{"/act", c.run}}, newHits(nil, noon), &output)
		r := httptest.NewRequest(http.MethodPost, "/act", strings.NewReader("{}"))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusInternalServerError || w.Body.String() != `{"error":"internal"}`+"\n" || output.String() != c.text {
			t.Errorf("%s: %d %q, said %q; want 500 without detail, and %q", name, w.Code, w.Body, &output, c.text)
		}
	}
}
