package report

import (
	"fmt"
	"strings"

	"github.com/callgate/callgate/gateway/approvals"
	"github.com/callgate/callgate/internal/acp/wire"
	"github.com/callgate/callgate/internal/duration"
	"github.com/callgate/callgate/wrapper"
)

// MayAsk reports whether the user of the client decides a question: a rule lets callers answer,
// and there is something to show.
func MayAsk(q approvals.Question) bool { return len(q.Rules) > 0 && len(q.Arguments) > 0 }

// Options are the answers that a user may choose: a yes that stands only where the rules let it,
// named with its time, and a no for once or for as long as the approval would have waited.
func Options(q approvals.Question) wire.List[wire.PermissionOption] {
	options := wire.List[wire.PermissionOption]{{OptionID: "allow", Name: "Allow once", Kind: wire.AllowOnce}}
	if d := q.Remember; d > 0 {
		options = append(options, wire.PermissionOption{
			OptionID: "allow-for", Name: fmt.Sprintf("Allow for %s, with these arguments", duration.Words(d, 2)), Kind: wire.AllowAlways,
		})
	}
	return append(options,
		wire.PermissionOption{OptionID: "reject", Name: "Reject once", Kind: wire.RejectOnce},
		wire.PermissionOption{OptionID: "reject-for", Name: "Reject, and do not ask again for a while", Kind: wire.RejectAlways})
}

// Ballot reads an answer by the kind of the option that was offered under its id. Without a
// ballot the user has not decided, and the call may not run: the answer is cancelled, or an
// option that was not offered.
func Ballot(q approvals.Question, offered []wire.PermissionOption, o wire.PermissionOutcome) *approvals.Ballot {
	if o.Outcome != wire.OutcomeSelected {
		return nil
	}
	for _, option := range offered {
		if option.OptionID != o.OptionID {
			continue
		}
		switch option.Kind {
		case wire.AllowOnce:
			return q.Yes(0)
		case wire.AllowAlways:
			if d := q.Remember; d > 0 {
				return q.Yes(d)
			}
			return nil
		case wire.RejectOnce:
			return q.No()
		case wire.RejectAlways:
			return q.NoStanding()
		}
	}
	return nil
}

// Waiting is the content of a call that waits for people: who decides, and where, which is empty
// without a page.
func Waiting(q approvals.Question, page string) []wire.ToolContent {
	text := "This call waits for approval; nothing was executed."
	if len(q.Others) > 0 {
		text = fmt.Sprintf("This call waits for the approval of people (%s); nothing was executed.", strings.Join(q.Others, ", "))
		if page != "" {
			text += " They decide at " + page
		}
	}
	for _, hint := range q.Hints {
		text += "\n" + hint
	}
	return []wire.ToolContent{wire.TextContent(wrapper.EscapeText(text))}
}
