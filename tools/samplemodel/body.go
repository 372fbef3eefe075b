package main

import (
	"errors"
	"io"
	"mime"
	"net/http"
)

const maxBody = 8 << 20

// readBody reads the body of a request of any API.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, *failure) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/json" {
		return nil, failed(http.StatusUnsupportedMediaType, "", "found another content type; expected application/json")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			return nil, failed(http.StatusRequestEntityTooLarge, "", "found a body over %d bytes; expected at most that", maxBody)
		}
		return nil, failed(http.StatusBadRequest, "", "the body broke off")
	}
	return body, nil
}
