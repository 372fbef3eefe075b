package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const maxBody = 1 << 20

// readBody reads the whole body of a request.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/json" {
		return nil, failed(http.StatusUnsupportedMediaType, "found another content type; expected application/json")
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return nil, failed(http.StatusUnsupportedMediaType, "found a content coding; expected none")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			return nil, failed(http.StatusRequestEntityTooLarge, "found a body over %d bytes; expected at most that", maxBody)
		}
		return nil, failed(http.StatusBadRequest, "the body broke off")
	}
	if !utf8.Valid(body) {
		return nil, failed(http.StatusBadRequest, "found invalid UTF-8; expected JSON")
	}
	return body, nil
}

// argument is one member that an object may have.
type argument struct {
	name     string
	into     any    // a pointer to what json.Unmarshal can fill
	expected string // what the value must be, for the message
	required bool
}

// decode takes one JSON object apart. Names match byte for byte, each may stand
// once, and null is no value.
func decode(body []byte, arguments ...argument) error {
	d := json.NewDecoder(bytes.NewReader(body))
	if first, err := d.Token(); err != nil || first != json.Delim('{') {
		return failed(http.StatusBadRequest, "found no JSON object; expected %s", members(arguments))
	}
	seen := map[string]bool{}
	for d.More() {
		token, err := d.Token()
		name, ok := token.(string)
		if err != nil || !ok {
			return malformed()
		}
		at := slices.IndexFunc(arguments, func(a argument) bool { return a.name == name })
		if at < 0 {
			return failed(http.StatusBadRequest, "found an unknown member; expected %s", members(arguments))
		}
		if seen[name] {
			return failed(http.StatusBadRequest, "found %s twice; expected it once", name)
		}
		seen[name] = true
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return malformed()
		}
		if a := arguments[at]; string(raw) == "null" || json.Unmarshal(raw, a.into) != nil {
			return failed(http.StatusBadRequest, "found another type for %s; expected %s", name, a.expected)
		}
	}
	if _, err := d.Token(); err != nil {
		return malformed()
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return failed(http.StatusBadRequest, "found something after the object; expected nothing")
	}
	for _, a := range arguments {
		if a.required && !seen[a.name] {
			return failed(http.StatusBadRequest, "found no %s; expected %s", a.name, a.expected)
		}
	}
	return nil
}

func malformed() error {
	return failed(http.StatusBadRequest, "found malformed JSON; expected an object")
}

// members says which members there may be.
func members(arguments []argument) string {
	if len(arguments) == 0 {
		return "an object without members"
	}
	var names []string
	for _, a := range arguments {
		names = append(names, a.name)
	}
	return "an object with " + strings.Join(names, ", ")
}

// whole is an integer as JSON Schema has it: 5.0 and 5e0 are integers too.
type whole int

func (w *whole) UnmarshalJSON(raw []byte) error {
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > 1<<31 {
		return errors.New("not an integer within bounds")
	}
	*w = whole(f)
	return nil
}
