package journal

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/callgate/callgate/audit"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/registry"
)

// maxRecordedName bounds a name that a model made up, in bytes. No tool has such a long
// name.
const maxRecordedName = 1024

// BoundedName shortens a name that a model wrote.
func BoundedName(name string) string {
	if len(name) <= maxRecordedName {
		return name
	}
	return strings.ToValidUTF8(name[:maxRecordedName], "")
}

// Content is what a record may have of a call.
type Content struct {
	Arguments []byte          // as they were judged; nil where they were not read
	Tool      *registry.Entry // that hides its secrets in them; nil where it is unknown
	Secrets   bool            // some tool has secrets
	Text      bool            // the completion is a text
	Native    bool            // there is no completion

	Completion  []byte
	At, Written int // where the arguments stand in it, and how long they are there
}

// AddContent adds the content that the operator chose to record, without secrets. Where
// the tool is unknown, nothing can be redacted: content is then recorded only if no tool
// has secrets.
func AddContent(r *audit.Record, keep audit.Content, c Content) {
	defer safe.Catch(func(error) { r.Arguments, r.Completion = nil, "" })
	redacted := c.Arguments != nil && c.Tool != nil
	if redacted {
		// Redact hides arguments that it cannot read.
		r.Arguments, _ = audit.Redact(c.Arguments, c.Tool.Secret)
	}
	if keep != audit.Completion || c.Native {
		return
	}
	switch {
	case redacted:
		r.Completion = string(c.Completion[:c.At]) + string(r.Arguments) + string(c.Completion[c.At+c.Written:])
	case c.Text || !c.Secrets:
		r.Completion = string(c.Completion)
	}
}

const digestLen = 2 * sha256.Size

// Digest is the SHA-256 of bytes, in hex.
func Digest(b []byte) string {
	text := digest(b)
	return string(text[:])
}

func digest(b []byte) (text [digestLen]byte) {
	sum := sha256.Sum256(b)
	hex.Encode(text[:], sum[:])
	return text
}

// Digests makes the digests of one call, mostly three, in one piece of memory. The zero value is
// ready; it must not be copied, and is for one goroutine at a time.
type Digests struct{ texts strings.Builder }

// Of is Digest.
func (d *Digests) Of(b []byte) string {
	if d.texts.Cap() == 0 {
		d.texts.Grow(3 * digestLen)
	}
	text, from := digest(b), d.texts.Len()
	d.texts.Write(text[:])
	return d.texts.String()[from:]
}
