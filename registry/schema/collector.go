package schema

import (
	"slices"

	"github.com/callgate/callgate/refusal"
)

// maxViolations bounds what one refusal lists.
const maxViolations = 100

// collector keeps the first violations in the order of the answer: by path
// bytes, then wrong_type, missing, unexpected, invalid. It never holds more
// than twice what it returns.
type collector struct {
	list []*finding
	cut  bool // list was cut to maxViolations at least once and is sorted up to there
}

// add notes a finding if there is room for it.
func (c *collector) add(f finding) {
	if c.cut && f.comparePlace(c.list[maxViolations-1]) > 0 {
		return
	}
	f.path = slices.Clone(f.path)
	c.list = append(c.list, &f)
	if len(c.list) >= 2*maxViolations {
		c.compact()
	}
}

// compact sorts the findings, drops the hidden ones and keeps maxViolations.
func (c *collector) compact() {
	slices.SortStableFunc(c.list, (*finding).compare)
	// Where the type is wrong, nothing else about that value is reported. Its
	// own fault sorts before everything inside it, though not next to it.
	var wrong map[string]bool
	for _, f := range c.list {
		if f.code == refusal.WrongType {
			if wrong == nil {
				wrong = map[string]bool{}
			}
			wrong[f.pointer] = true
		}
	}
	kept := c.list[:0]
	for _, f := range c.list {
		if n := len(kept); n > 0 && f.compare(kept[n-1]) == 0 || hiddenByType(wrong, f) {
			continue
		}
		kept = append(kept, f)
		if len(kept) == maxViolations {
			c.cut = true
			break
		}
	}
	clear(c.list[len(kept):])
	c.list = kept
}

func hiddenByType(wrong map[string]bool, f *finding) bool {
	if len(wrong) == 0 {
		return false
	}
	if f.code != refusal.WrongType && f.at == Value && wrong[f.pointer] {
		return true
	}
	for i := len(f.pointer) - 1; i >= 0; i-- {
		if f.pointer[i] == '/' && wrong[f.pointer[:i]] {
			return true
		}
	}
	return false
}
