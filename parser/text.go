package parser

import (
	"bytes"
	_ "embed"
	"strings"
	"unicode/utf8"

	"github.com/callgate/callgate/refusal"
)

//go:embed foreign-marks.txt
var foreignMarks string

// marks are the marks of foreign tool-call syntaxes. It is read only.
var marks, longestMark = readMarks(foreignMarks)

// markIndex finds marks by their first byte, which is one of few, and their
// second.
type markIndex map[byte]*[256][]string

func readMarks(list string) (byStart markIndex, longest int) {
	byStart = markIndex{}
	for line := range strings.Lines(list) {
		mark := strings.TrimSuffix(line, "\n")
		if mark == "" || strings.HasPrefix(mark, "# ") {
			continue
		}
		if byStart[mark[0]] == nil {
			byStart[mark[0]] = new([256][]string)
		}
		second := byStart[mark[0]]
		second[mark[1]] = append(second[mark[1]], mark)
		longest = max(longest, len(mark))
	}
	return byStart, longest
}

// specials are the bytes at which something may start: an object, a mark, and,
// where other JSON is allowed, a member.
const specials = "{<[`,"

// textReader searches text for the first fault: a byte that is no UTF-8, a mark
// of a foreign syntax, or an object that opens. It takes the text in pieces,
// looks at each byte a bounded number of times, and keeps nothing of the text
// but the unfinished beginning of a mark or a rune.
type textReader struct {
	max  int
	json refusedJSON

	offset     int           // of the next byte that the search has not seen
	unfinished []byte        // an unfinished UTF-8 sequence, at offset
	tail       []byte        // an unfinished mark; it ends at offset
	open       []objectStart // alive candidates, lowest start first
	best       *fault        // the lowest fault that is certain
	done       bool          // best is the verdict: no candidate below it is alive
}

// read takes the next piece. After the verdict is certain, and beyond the window, pieces
// are skipped.
func (t *textReader) read(p []byte) {
	if t.done {
		return
	}
	if len(t.unfinished) > 0 {
		p = t.finishRune(p)
		if t.done {
			return
		}
	}
	valid, broken := validPrefix(p)
	t.search(p[:valid])
	if t.done {
		return
	}
	rest := p[valid:]
	if broken >= 0 {
		t.invalid(t.offset + broken - valid)
		return
	}
	t.unfinished = append(t.unfinished, rest...)
}

// finishRune completes the sequence that the last piece left unfinished, byte
// by byte, and returns what follows it.
func (t *textReader) finishRune(p []byte) []byte {
	for len(p) > 0 && len(t.unfinished) > 0 {
		t.unfinished = append(t.unfinished, p[0])
		size, broken := sequence(t.unfinished)
		switch {
		case broken >= 0:
			t.invalid(t.offset + broken)
			return nil
		case size == len(t.unfinished):
			done := t.unfinished
			t.unfinished = nil
			t.search(done)
			t.unfinished = done[:0]
		}
		p = p[1:]
		if t.done {
			return nil
		}
	}
	return p
}

// invalid ends the search at a byte that is no UTF-8: every candidate and mark
// ends there.
func (t *textReader) invalid(offset int) {
	t.certain(&fault{offset: offset, code: refusal.InvalidUTF8})
	t.open, t.tail, t.done = t.open[:0], nil, true
}

// certain notes a fault and drops what can only start after it.
func (t *textReader) certain(f *fault) {
	if t.best == nil || f.offset < t.best.offset {
		t.best = f
	}
	alive := t.open[:0]
	for _, o := range t.open {
		if o.start < t.best.offset {
			alive = append(alive, o)
		}
	}
	t.open = alive
	t.tail = nil // no mark that is not whole yet starts below the fault
	t.done = len(alive) == 0
}

// search looks through bytes that are whole runes.
func (t *textReader) search(p []byte) {
	if len(p) == 0 {
		return
	}
	if len(t.tail) > 0 {
		t.finishMarks(p)
		if t.done {
			return
		}
	}
	next := [len(specials)]int{}
	for k := range next {
		next[k] = -1
	}
	kinds := len(specials)
	if t.json.names() == nil {
		kinds-- // commas start nothing
	}
	for i := 0; i < len(p); {
		if len(t.open) == 0 {
			// Nothing is open: jump to the next byte that can start something.
			at := len(p)
			for k := range kinds {
				if next[k] < i {
					if n := bytes.IndexByte(p[i:], specials[k]); n >= 0 {
						next[k] = i + n
					} else {
						next[k] = len(p)
					}
				}
				at = min(at, next[k])
			}
			if i = at; i == len(p) {
				break
			}
		}
		t.step(p, i)
		i++
		if t.done {
			t.offset += i
			return
		}
	}
	t.offset += len(p)
}

// step takes the byte p[i]: alive candidates continue or end, and new ones and
// marks start.
func (t *textReader) step(p []byte, i int) {
	c, offset := p[i], t.offset+i
	if len(t.open) > 0 {
		t.stepOpen(c)
		if t.done {
			return
		}
	}
	switch c {
	case '{':
		if t.json != noObject {
			t.begin(offset)
		}
	case ',':
		if t.json.names() != nil {
			t.begin(offset)
		}
	case '<', '[', '`':
		t.mark(p[i:], offset)
	}
}

// begin starts a candidate, unless a fault below it is certain already.
func (t *textReader) begin(offset int) {
	if t.best == nil {
		t.open = append(t.open, objectStart{start: offset, state: afterBrace})
	}
}

// stepOpen takes one byte further through every alive candidate.
func (t *textReader) stepOpen(c byte) {
	alive := t.open[:0]
	found := -1
	for _, o := range t.open {
		switch state := t.stepCandidate(&o, c); {
		case state == opened && found < 0:
			found = o.start
		case state != opened && state != dead:
			alive = append(alive, o)
		}
	}
	t.open = alive
	if found >= 0 {
		t.certain(&fault{offset: found, code: refusal.MixedOutput})
	} else if t.best != nil {
		t.done = len(alive) == 0
	}
}

// stepCandidate takes one byte further through a candidate. It is opened where it is a fault.
func (t *textReader) stepCandidate(o *objectStart, c byte) startState {
	names := t.json.names()
	if o.state == beforeValue {
		switch {
		case isSpace(c):
			return beforeValue
		case isCallValue(o.key, c):
			return opened
		}
		return dead
	}
	before := o.state
	state := o.step(c)
	switch {
	case names == nil:
	case state == opened && !isName(o.key, names):
		return dead
	case state == opened && t.json == callValues:
		o.state = beforeValue
		return beforeValue
	case before != afterBrace && (state == inString || state == inEscape || state == inHex):
		if o.key = append(o.key, c); !beginsName(o.key, names) {
			return dead
		}
	}
	return state
}

// mark looks for a mark at the start of p. One that p cuts short is kept.
func (t *textReader) mark(p []byte, offset int) {
	if t.best != nil {
		return
	}
	mark, partial := markAt(p)
	if mark != "" {
		t.certain(&fault{offset: offset, code: refusal.ForeignCallSyntax, detail: mark})
	} else if partial && len(t.tail) == 0 {
		t.tail = append(t.tail, p...)
	}
}

// markAt returns the mark that p starts with, or whether p is the beginning of
// one.
func markAt(p []byte) (mark string, partial bool) {
	if len(p) == 1 {
		return "", true // every special that reaches here starts some mark
	}
	for _, m := range marks[p[0]][p[1]] {
		if len(p) >= len(m) {
			if string(p[:len(m)]) == m {
				return m, false
			}
		} else if m[:len(p)] == string(p) {
			partial = true
		}
	}
	return "", partial
}

// finishMarks continues a possible beginning of a mark, with the bytes
// that follow it. The tail keeps its lowest place that may still be one.
func (t *textReader) finishMarks(p []byte) {
	start := t.offset - len(t.tail)
	joined := append(t.tail, p[:min(len(p), longestMark)]...)
	carried := len(t.tail)
	t.tail = nil
	if t.best != nil {
		return
	}
	for i := range carried {
		if c := joined[i]; c != '<' && c != '[' && c != '`' {
			continue
		}
		mark, partial := markAt(joined[i:])
		if mark != "" {
			t.certain(&fault{offset: start + i, code: refusal.ForeignCallSyntax, detail: mark})
			return
		}
		if partial {
			t.tail = joined[i:]
			return
		}
	}
}

// hold is the offset from which on nothing may be released yet.
func (t *textReader) hold() int {
	h := min(t.offset-len(t.tail), t.max)
	if len(t.open) > 0 {
		h = min(h, t.open[0].start)
	}
	if t.best != nil {
		h = min(h, t.best.offset)
	}
	return h
}

// end gives the verdict on all that was read: nil when it is text.
func (t *textReader) end(in input) *fault {
	if t.best == nil && len(t.unfinished) > 0 {
		t.best = &fault{offset: t.offset + len(t.unfinished), code: refusal.InvalidUTF8}
	}
	return in.decide(t.best)
}

// validPrefix returns how many bytes of p are whole runes, and the index of the
// first byte that cannot continue, or -1 where p is valid or merely unfinished.
func validPrefix(p []byte) (valid, broken int) {
	if utf8.Valid(p) {
		return len(p), -1
	}
	for valid < len(p) {
		if p[valid] < utf8.RuneSelf {
			valid++
			continue
		}
		size, at := sequence(p[valid:])
		if at >= 0 {
			return valid, valid + at
		}
		if size == 0 {
			return valid, -1
		}
		valid += size
	}
	return valid, -1
}

// sequence reads one UTF-8 sequence (RFC 3629) at the start of p: its size, 0
// where p ends within it, and the index of the first byte that cannot continue
// it, or -1.
func sequence(p []byte) (size, broken int) {
	c := p[0]
	low, high := byte(0x80), byte(0xBF)
	switch {
	case c < 0x80:
		return 1, -1
	case c < 0xC2 || c > 0xF4:
		return 0, 0
	case c < 0xE0:
		size = 2
	case c < 0xF0:
		size = 3
		if c == 0xE0 {
			low = 0xA0 // no overlong form
		} else if c == 0xED {
			high = 0x9F // no surrogate
		}
	default:
		size = 4
		if c == 0xF0 {
			low = 0x90
		} else if c == 0xF4 {
			high = 0x8F // nothing above U+10FFFF
		}
	}
	for i := 1; i < size; i++ {
		if i == len(p) {
			return 0, -1
		}
		if p[i] < low || p[i] > high {
			return 0, i
		}
		low, high = 0x80, 0xBF
	}
	return size, -1
}
