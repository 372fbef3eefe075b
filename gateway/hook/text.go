package hook

import (
	"bytes"
	"context"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/callgate/callgate/gateway/hook/window"
	"github.com/callgate/callgate/internal/rawjson"
)

// Texts is a text of a model that comes in pieces, on its way through the hooks at Text. The pieces
// that it releases are together the text that the hooks leave of the whole, and nothing of a match is ever out before
// it is found. A Texts holds no more than the MaxBytes of a hook: a longer text is denied. It is for one
// goroutine.
type Texts struct {
	runner   Runner
	question Question
	filters  []*filter
	denied   *Denial
	closed   bool
}

// filter is one hook on the way.
type filter struct {
	hook *Hook
	// scanners are the patterns, one after the other. Whole says that the text goes through as one: a
	// callout is asked once, and in a text that may be JSON, texts are decoded.
	scanners []*window.Scanner
	begun    bool // something came that is no white space
	whole    bool
	buffered []window.Piece // of a whole text, or of white space in front of it
	length   int            // as a JSON text
	changed  bool
	took     time.Duration
}

// Text begins a text; it is nil where no hook of the set is for it.
func (r Runner) Text(s *Set, q Question) *Texts {
	if q.At = Text; !s.Applies(Text, q.Agent, "") {
		return nil
	}
	t := &Texts{runner: r, question: q}
	for _, h := range s.hooks {
		if !h.applies(Text, q.Agent, "") {
			continue
		}
		f := &filter{hook: h, whole: h.Callout != nil, length: len(`""`)}
		for _, p := range h.Patterns {
			var by []byte
			if h.OnMatch == Redact {
				by = []byte(p.mark())
			}
			f.scanners = append(f.scanners, window.NewScanner(p.pieces, by))
		}
		t.filters = append(t.filters, f)
	}
	return t
}

// Write takes the next piece, and returns what is let out. After a denial it is nothing.
func (t *Texts) Write(text []byte) []window.Piece {
	if t.denied != nil || t.closed || len(text) == 0 {
		return nil
	}
	pieces := []window.Piece{{Text: text, Of: len(text)}}
	for _, f := range t.filters {
		if len(pieces) == 0 {
			return nil
		}
		began := t.runner.Now()
		pieces, t.denied = f.write(pieces)
		f.took += t.runner.Now().Sub(began)
		if t.denied != nil {
			t.deny(f)
			return nil
		}
	}
	return pieces
}

// Denied is the denial of the text so far; nil: none.
func (t *Texts) Denied() *Denial { return t.denied }

// Close says that the text has ended, and returns the rest of it, unless it is denied.
func (t *Texts) Close(ctx context.Context) []window.Piece {
	if t.denied != nil || t.closed {
		return nil
	}
	t.closed = true
	var pieces []window.Piece
	for _, f := range t.filters {
		began := t.runner.Now()
		pieces, t.denied = f.write(pieces)
		if t.denied == nil {
			var rest []window.Piece
			rest, t.denied = f.close(ctx, t)
			pieces = append(pieces, rest...)
		}
		f.took += t.runner.Now().Sub(began)
		if t.denied != nil {
			t.deny(f)
			return nil
		}
		verdict := Passed
		if f.changed {
			verdict = Redacted
		}
		t.observe(f, verdict)
	}
	return pieces
}

// Redacted are the names of the hooks that have redacted the text so far.
func (t *Texts) Redacted() []string {
	var names []string
	for _, f := range t.filters {
		if f.changed {
			names = append(names, f.hook.Name)
		}
	}
	return names
}

// deny notes by which hook the text is denied.
func (t *Texts) deny(f *filter) {
	t.denied.Hook = f.hook.Name
	verdict := Denied
	if t.denied.Failed {
		verdict = Failed
	}
	t.observe(f, verdict)
}

func (t *Texts) observe(f *filter, verdict string) {
	if t.runner.Observer != nil {
		t.runner.Observer.HookEnded(f.hook.Name, string(Text), verdict, f.took)
	}
}

// write takes some pieces through the hook.
func (f *filter) write(pieces []window.Piece) (out []window.Piece, _ *Denial) {
	for _, p := range pieces {
		// The length as a JSON text is what the hook's bound is of.
		if f.length += len(rawjson.AppendQuote(nil, p.Text)) - len(`""`); f.length > f.hook.MaxBytes {
			return nil, tooLong(f.hook)
		}
		if !f.begun {
			f.begins(p.Text)
		}
		if f.whole || !f.begun {
			f.buffered = append(f.buffered, window.Piece{Text: bytes.Clone(p.Text), Of: p.Of})
			continue
		}
		some, denied := f.scan(append(f.buffered, p), 0)
		if f.buffered = nil; denied != nil {
			return nil, denied
		}
		out = append(out, some...)
	}
	return out, nil
}

// begins looks at how a text begins: one that may be JSON, whose texts are to be decoded, is taken as a
// whole.
func (f *filter) begins(text []byte) {
	for _, b := range text {
		switch b {
		case ' ', '\t', '\r', '\n':
			continue
		case '{', '[', '"':
			f.whole = true
		}
		f.begun = true
		return
	}
}

// scan takes some pieces through the patterns, from the one at an index on.
func (f *filter) scan(pieces []window.Piece, from int) ([]window.Piece, *Denial) {
	for i := from; i < len(f.scanners); i++ {
		out, found, err := f.scanners[i].Write(pieces)
		if denied := f.note(i, found, err); denied != nil {
			return nil, denied
		}
		pieces = out
	}
	return pieces, nil
}

// note notes what a pattern has found.
func (f *filter) note(i int, found bool, err error) *Denial {
	switch {
	case err != nil:
		return failed(err)
	case found:
		return matched(Text, f.hook.Patterns[i].Name, "")
	}
	f.changed = f.changed || f.scanners[i].Replaced()
	return nil
}

// close is the rest of the text.
func (f *filter) close(ctx context.Context, t *Texts) (rest []window.Piece, _ *Denial) {
	if f.whole {
		return f.runWhole(ctx, t)
	}
	rest, denied := f.scan(f.buffered, 0) // white space alone
	for i := range f.scanners {
		if denied != nil {
			return nil, denied
		}
		out, found, err := f.scanners[i].Close()
		if denied = f.note(i, found, err); denied == nil {
			out, denied = f.scan(out, i+1)
			rest = append(rest, out...)
		}
	}
	return rest, denied
}

// runWhole runs the hook over the text that was held.
func (f *filter) runWhole(ctx context.Context, t *Texts) ([]window.Piece, *Denial) {
	text := window.Join(f.buffered)
	if !utf8.Valid(text) {
		return nil, failed(errors.New("the text is no UTF-8"))
	}
	left, _, denied := t.runner.runOne(ctx, f.hook, t.question, rawjson.AppendQuote(nil, text))
	if denied != nil {
		return nil, denied
	}
	unquoted, err := rawjson.Unquote(left)
	switch {
	case err != nil:
		return nil, failed(err)
	case string(unquoted) == string(text):
		return f.buffered, nil
	}
	f.changed = true
	of := 0
	for _, p := range f.buffered {
		of += p.Of
	}
	return []window.Piece{{Text: unquoted, Of: of}}, nil
}
