package facetest

import "net/http/httptest"

// Recorder records a response, and calls Seen with the body so far after each write to it.
// Seen is called by the goroutine that writes, one call at a time if the writes are.
type Recorder struct {
	*httptest.ResponseRecorder
	Seen func(body string)
}

func (r *Recorder) Write(p []byte) (int, error) {
	n, err := r.ResponseRecorder.Write(p)
	r.Seen(r.Body.String())
	return n, err
}
