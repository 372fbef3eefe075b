// Package secret reads secrets from the places that a configuration names: a variable of
// the environment, a file, or the output of a command. A configuration holds only the places,
// so that printing it prints no secret.
//
// A Ref is read as it is at that moment by Read. A Store reads for those that need secrets all
// the time: it reads a file again once it has changed, runs a command again after a while, and
// keeps the last good value for a bounded time while neither gives one.
package secret

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/callgate/callgate/configs/document"
)

// Ref is the place of a secret: in the environment, in a file, or the output of a command. It
// holds only the place, so that printing a configuration prints no secret.
type Ref struct {
	kind  string // empty if there is none
	place string // the variable, the path, or the command as commandPlace encodes it
}

// The places of secrets.
const (
	inEnvironment = "env"
	inFile        = "file"
	inCommand     = "command"
)

// IsSet reports whether there is one.
func (s Ref) IsSet() bool { return s.kind != "" }

// String names the place, in a form that Parse reads.
func (s Ref) String() string {
	if !s.IsSet() {
		return ""
	}
	return s.kind + ":" + s.place
}

// Read returns the current secret at a place in the environment or in a file; line breaks at the
// end of a file are not part of it. Commands are run by a Store alone. The error names the place,
// never its content.
func (s Ref) Read() (string, error) {
	switch s.kind {
	case inEnvironment:
		value := os.Getenv(s.place)
		if value == "" {
			return "", fmt.Errorf("found no environment variable %s, or an empty one; expected a secret there", s.place)
		}
		return value, nil
	case inFile:
		value, _, err := readSecretFile(s.place)
		return value, err
	case inCommand:
		return "", errors.New("found a command; expected env:NAME or file:PATH here, since no command is run")
	}
	return "", errors.New("found no secret; expected one")
}

// Parse returns the place that String names so.
func Parse(place string) Ref {
	kind, at, _ := strings.Cut(place, ":")
	return Ref{kind, at}
}

// Decode reads the place of a secret in the environment or in a file. Messages never show the
// value found: it may be the secret itself.
func Decode(n document.Node, of string, into *Ref) {
	n.Matching(of+": env:NAME or file:PATH, its place", "^("+inEnvironment+"|"+inFile+"):.+$")
	kind, place, stated := strings.Cut(n.Value, ":")
	if !n.IsString() || !stated || place == "" || kind != inEnvironment && kind != inFile {
		n.Fail("found a literal secret; expected env:NAME or file:PATH for %s", of)
		return
	}
	if kind == inFile {
		place = n.ResolvePath(place)
		if _, _, err := readSecretFile(place); err != nil {
			warnOnce(n, fmt.Sprintf("%v; put the secret there: without it, what needs the secret fails", err))
		}
	} else if os.Getenv(place) == "" {
		warnOnce(n, fmt.Sprintf("the environment variable %s is not set, or is empty; set it before callgate starts: without it, what needs the secret fails", place))
	}
	*into = Ref{kind, place}
}

// ReadNode is Decode, for a field of a struct of keys.
func (s *Ref) ReadNode(n document.Node, of string) { Decode(n, of, s) }

// warnOnce warns of a place that has no secret: what needs it would only say so when it fails.
func warnOnce(n document.Node, warning string) {
	if !slices.ContainsFunc(n.Report.Warnings, func(f *document.Fault) bool { return f.Message == warning }) {
		n.Warn("%s", warning)
	}
}

// DecodeAny reads the place of a secret as Decode does, or a mapping with a command that prints it.
func DecodeAny(n document.Node, of string, into *Ref) {
	if !n.IsMapping() {
		Decode(n, of, into)
		return
	}
	decodeCommand(n, into)
}

// IsPlace reports whether a value is meant to be the place of one.
func IsPlace(value string) bool {
	return strings.HasPrefix(value, inEnvironment+":") || strings.HasPrefix(value, inFile+":")
}
