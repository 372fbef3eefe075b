// Package secret reads secrets from the places that a configuration names: a variable of
// the environment, or a file. A configuration holds only the places, so that printing it
// prints no secret.
package secret

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/callgate/callgate/configs/document"
)

// Ref is the place of a secret: in the environment, or in a file. It holds only the place,
// so that printing a configuration prints no secret.
type Ref struct {
	kind  string // env or file; empty if there is none
	place string // the variable, or the path
}

// The places of secrets.
const (
	inEnvironment = "env"
	inFile        = "file"
)

// maxSecretBytes bounds a secret, in bytes.
const maxSecretBytes = 64 << 10

// IsSet reports whether there is one.
func (s Ref) IsSet() bool { return s.kind != "" }

// String names the place.
func (s Ref) String() string {
	if !s.IsSet() {
		return ""
	}
	return s.kind + ":" + s.place
}

// Read returns the current secret at that place; line breaks at the end of a file are not
// part of it. The error names the place, never its content.
func (s Ref) Read() (string, error) {
	switch s.kind {
	case inEnvironment:
		value := os.Getenv(s.place)
		if value == "" {
			return "", fmt.Errorf("found no environment variable %s, or an empty one; expected a secret there", s.place)
		}
		return value, nil
	case inFile:
		return readSecretFile(s.place)
	}
	return "", errors.New("found no secret; expected one")
}

// Parse returns the place that String names so.
func Parse(place string) Ref {
	kind, at, _ := strings.Cut(place, ":")
	return Ref{kind, at}
}

// Resolve returns the current secret at a place as String names it.
func Resolve(place string) (string, error) { return Parse(place).Read() }

func readSecretFile(path string) (string, error) {
	data, err := document.ReadFile(path)
	value := strings.TrimRight(string(data), "\r\n")
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: %w", path, err)
	case len(data) > maxSecretBytes:
		return "", fmt.Errorf("%s: found more than %d bytes; expected a secret", path, maxSecretBytes)
	case value == "":
		return "", fmt.Errorf("%s: found an empty file; expected a secret", path)
	}
	return value, nil
}

// Decode reads the place of a secret. Messages never show the value found: it may be the
// secret itself.
func Decode(n document.Node, of string, into *Ref) {
	n.Matching(of+": env:NAME or file:PATH, its place", "^("+inEnvironment+"|"+inFile+"):.+$")
	kind, place, stated := strings.Cut(n.Value, ":")
	if !n.IsString() || !stated || place == "" || kind != inEnvironment && kind != inFile {
		n.Fail("found something else; expected env:NAME or file:PATH, the place of a secret: %s", of)
		return
	}
	if kind == inFile {
		place = n.ResolvePath(place)
	}
	*into = Ref{kind, place}
}

// IsPlace reports whether a value is meant to be the place of one.
func IsPlace(value string) bool {
	return strings.HasPrefix(value, inEnvironment+":") || strings.HasPrefix(value, inFile+":")
}
