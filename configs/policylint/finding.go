package policylint

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/callgate/callgate/policy"
)

// ID names a kind of finding.
type ID string

// The kinds of findings. Those of the first group are always reported: without the row, or the
// limit, everything is decided as with it, or it reaches further than it looks.
const (
	Idle         ID = policy.Idle
	Repeated     ID = policy.Repeated
	NoMembers    ID = policy.NoMembers
	Shadowed     ID = "shadowed"
	Overridden   ID = "overridden"
	DenyNothing  ID = "deny-nothing"
	AskNothing   ID = "ask-nothing"
	NeverTrue    ID = "never-true"
	Wide         ID = "wide"
	CommandPart  ID = "command-part"
	IdleLimit    ID = "idle-limit"
	DottedDeny   ID = "dotted-deny"
	CountsFirst  ID = "counts-first"
	LabelUnread  ID = "label-unread"
	LabelUnadded ID = "label-unadded"
)

// Those of the second group may well be meant, and are reported when all are asked for.
const (
	Constant   ID = "constant"
	Optional   ID = "optional"
	Nobody     ID = "nobody"
	IdleAgent  ID = "idle-agent"
	SameAnswer ID = "same-answer"
	Untainted  ID = "once-untainted"
)

// IDs lists all kinds, in the order in which the findings of one line are reported.
func IDs() []ID {
	return []ID{Idle, Repeated, NoMembers, Shadowed, Overridden, DenyNothing, AskNothing, NeverTrue, Wide, CommandPart, IdleLimit,
		DottedDeny, CountsFirst, LabelUnread, LabelUnadded, Constant, Optional, Nobody, IdleAgent, SameAnswer, Untainted}
}

// byRequest reports whether a kind is reported only when all are asked for.
func (id ID) byRequest() bool {
	return slices.Contains([]ID{Constant, Optional, Nobody, IdleAgent, SameAnswer, Untainted}, id)
}

// Page is where a kind is explained.
func (id ID) Page() string { return "docs/policy-lint.md#" + string(id) }

// Finding is one finding.
type Finding struct {
	ID      ID     `json:"id"`
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"` // from 1; 0 where it is of no line
	Message string `json:"message"`
	Page    string `json:"page"`
}

// String is one line.
func (f Finding) String() string {
	at := f.File
	if f.Line > 0 {
		at += ":" + strconv.Itoa(f.Line)
	}
	return fmt.Sprintf("%s: %s: %s (%s)", at, f.ID, f.Message, f.Page)
}
