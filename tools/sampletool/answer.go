package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// failure is a refusal with its HTTP status. Its message never repeats a value
// of the request.
type failure struct {
	status  int
	message string
}

func failed(status int, format string, args ...any) *failure {
	return &failure{status, fmt.Sprintf(format, args...)}
}

func (f *failure) Error() string { return f.message }

// refuse writes a failure.
func refuse(w http.ResponseWriter, f *failure) {
	answer(w, f.status, map[string]string{"error": f.message})
}

// verbatim is JSON that is written byte for byte.
type verbatim []byte

// answer writes one JSON value.
func answer(w http.ResponseWriter, status int, value any) {
	body, ok := value.(verbatim)
	if !ok {
		var b bytes.Buffer
		encoder := json.NewEncoder(&b)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(value); err != nil {
			status = http.StatusInternalServerError
			b.Reset()
			b.WriteString(`{"error":"internal"}` + "\n")
		}
		body = b.Bytes()
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	// A client that has left cannot be told anything.
	_, _ = w.Write(body)
}
