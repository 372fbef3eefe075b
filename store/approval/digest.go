package approval

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strconv"

	"github.com/callgate/callgate/internal/rawjson"
)

// Call is a tool call, with all that a yes to it is bound to. A part that the call does not
// have is empty.
type Call struct {
	Principal string `json:"principal"`
	Workspace string `json:"workspace"`
	Project   string `json:"project"`
	Agent     string `json:"agent"`
	User      string `json:"user,omitempty"`
	Thread    string `json:"thread,omitempty"`

	Tool    string `json:"tool"`
	Version string `json:"version"`
	// Definition is the digest of the tool's definition: schemas, description, effect, and
	// how it is run, without its credential.
	Definition string `json:"definition"`
	// AnswersDigest is the digest of the call's request state and answers.
	AnswersDigest string `json:"said,omitempty"`
	// Arguments are the bytes that were validated. They are deleted when the approval ends.
	Arguments []byte `json:"arguments,omitempty"`
}

// MaxArguments bounds the arguments of a call that people can approve, in bytes: longer ones
// could not be shown whole.
const MaxArguments = 64 << 10

const maxDepth = 128

// The errors of a digest.
var (
	ErrTooLong   = errors.New("the arguments are too long to be shown, and so to be approved")
	errArguments = errors.New("the arguments are not strict JSON")
)

// Digest is SHA-256, in hex, over every part of the call. Arguments count by their value:
// white space and the order of members do not change the digest. Numbers and strings count
// as they are written, since a tool may tell 1 from 1.0.
func (c *Call) Digest() (string, error) { return c.digest("callgate approval 1", c.Thread) }

// digest is that of the call as if its thread were another. The kind separates the digests
// of different purposes.
func (c *Call) digest(kind, thread string) (string, error) {
	arguments, err := canonical(c.Arguments)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(arguments)
	return hash(kind, c.Tool, c.Version, c.Definition, c.Agent, c.Workspace, c.Project, c.Principal, c.User, thread, c.AnswersDigest,
		hex.EncodeToString(sum[:])), nil
}

// hash is the SHA-256, in hex, of texts, each of which is quoted: different lists of texts
// have different hashes.
func hash(parts ...string) string {
	var preimage []byte
	for _, part := range parts {
		preimage = append(strconv.AppendQuote(preimage, part), ' ')
	}
	sum := sha256.Sum256(preimage)
	return hex.EncodeToString(sum[:])
}

// canonical returns JSON without white space and with the members of each object sorted by
// their names.
func canonical(arguments []byte) ([]byte, error) {
	switch {
	case len(arguments) > MaxArguments:
		return nil, ErrTooLong
	case rawjson.Deeper(arguments, maxDepth):
		return nil, errArguments
	}
	w := canonicalWriter{r: rawjson.NewReader(arguments), out: make([]byte, 0, len(arguments))}
	if w.value() != nil || w.r.End() != nil {
		return nil, errArguments
	}
	return w.out, nil
}

type canonicalWriter struct {
	r   *rawjson.Reader
	out []byte
}

func (w *canonicalWriter) value() error {
	switch w.r.Kind() {
	case '{':
		return w.object()
	case '[':
		w.out = append(w.out, '[')
		err := w.r.Array(func() error {
			err := w.value()
			w.out = append(w.out, ',')
			return err
		})
		w.out = append(w.out, ']')
		return err
	}
	raw, err := w.r.Value()
	w.out = append(w.out, raw...)
	return err
}

func (w *canonicalWriter) object() error {
	type member struct {
		name     string
		from, to int // of the value
	}
	var members []member
	start := len(w.out)
	err := w.r.Object(func(name []byte) error {
		m := member{name: string(name), from: len(w.out)}
		err := w.value()
		m.to = len(w.out)
		members = append(members, m)
		return err
	})
	if err != nil {
		return err
	}
	slices.SortFunc(members, func(a, b member) int { return cmp.Compare(a.name, b.name) })
	values := bytes.Clone(w.out[start:])
	w.out = append(w.out[:start], '{')
	for _, m := range members {
		w.out = append(rawjson.AppendQuote(w.out, m.name), ':')
		w.out = append(append(w.out, values[m.from-start:m.to-start]...), ',')
	}
	w.out = append(w.out, '}')
	return nil
}
