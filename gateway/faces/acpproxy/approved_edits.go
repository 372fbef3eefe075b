package acpproxy

import (
	"slices"
	"strings"
	"time"

	"github.com/callgate/callgate/internal/acp/wire"
)

// approvedEdit is a change of one file as a user has seen it, and said yes to. The write by which the agent
// then makes it is not asked about again.
type approvedEdit struct {
	path     string
	diffs    []wire.ToolContent // in their order
	rules    []string           // those that the user has satisfied
	remember time.Duration      // how long the yes stands
}

// maxApprovedEdits bounds those of a turn: a write beyond them is asked about.
const maxApprovedEdits = 64

// approvedEdits are the changes that the content of a question shows.
func approvedEdits(content []wire.ToolContent, rules []string, remember time.Duration) (edits []approvedEdit) {
	for _, c := range content {
		if c.Type != wire.Diff {
			continue
		}
		i := slices.IndexFunc(edits, func(e approvedEdit) bool { return e.path == c.Path })
		if i < 0 {
			i = len(edits)
			edits = append(edits, approvedEdit{path: c.Path, rules: rules, remember: remember})
		}
		edits[i].diffs = append(edits[i].diffs, c)
	}
	return edits
}

// allows reports whether a write makes this change and no other: the text that the editor has of the file
// becomes the content by what was shown. A diff that was shown as a new file makes one of a file that is not
// there, or of which nobody knows.
func (e *approvedEdit) allows(rules []string, path, content string, old *string, known bool) bool {
	if path != e.path || slices.ContainsFunc(rules, func(rule string) bool { return !slices.Contains(e.rules, rule) }) {
		return false
	}
	text := ""
	if old != nil {
		text = *old
	}
	for i := range e.diffs {
		shown := ""
		if e.diffs[i].OldText != nil {
			shown = *e.diffs[i].OldText
		}
		switch {
		case shown == "" && text != "", shown != "" &&
			(!known || !strings.Contains(text, shown) || strings.Index(text, shown) != strings.LastIndex(text, shown)):
			return false
		case shown == "":
			text = e.diffs[i].NewText
		default:
			text = strings.Replace(text, shown, e.diffs[i].NewText, 1)
		}
	}
	return text == content
}

// approved notes changes that the user has approved.
func (s *session) approved(edits []approvedEdit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turn != nil && len(s.turn.approved)+len(edits) <= maxApprovedEdits {
		s.turn.approved = append(s.turn.approved, edits...)
	}
}

// mayHaveApproved reports whether a change of a file was approved in this turn, and not made yet.
func (s *session) mayHaveApproved(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turn != nil && slices.ContainsFunc(s.turn.approved, func(e approvedEdit) bool { return e.path == path })
}

// takeApproved takes an approved change, which stands for one write.
func (s *session) takeApproved(fits func(*approvedEdit) bool) (approvedEdit, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turn == nil {
		return approvedEdit{}, false
	}
	for i := range s.turn.approved {
		if e := s.turn.approved[i]; fits(&e) {
			s.turn.approved = slices.Delete(s.turn.approved, i, i+1)
			return e, true
		}
	}
	return approvedEdit{}, false
}
