package events

import (
	"math"
	"strings"

	"github.com/callgate/callgate/internal/text"
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
	return text.Cut(wrapper.EscapeText(text.Cut(strings.ToValidUTF8(text.Cut(s, 2*most), "\uFFFD"), most)), most)
}
