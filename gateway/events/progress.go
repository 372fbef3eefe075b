package events

import (
	"math"
	"strings"
	"unicode/utf8"

	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/wrapper"
)

// maxProgress bounds the text of a progress message after escaping.
const maxProgress = 1 << 10

// progressed passes on progress that increases; anything else is dropped.
func (t *Notifier) progressed(p tool.Progress) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.progress == nil || math.IsNaN(p.Done) || math.IsInf(p.Done, 0) || t.began && p.Done <= t.last {
		return
	}
	t.began, t.last = true, p.Done
	if !(p.Total > 0) || math.IsInf(p.Total, 0) {
		p.Total = 0
	}
	p.Message = boundedText(t.passText(p.Message), maxProgress)
	if !delivered(func() { t.progress(p) }) {
		t.progress = nil
	}
}

// boundedText are a tool's, of bounded length, in which nothing hides.
func boundedText(s string, most int) string {
	return truncate(wrapper.EscapeText(truncate(strings.ToValidUTF8(truncate(s, 2*most), "\uFFFD"), most)), most)
}

// truncate is the longest beginning of a text that is not above a length, and ends with a
// whole code point.
func truncate(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
