package wire

import "encoding/json"

// ToolKind is the kind of a tool.
type ToolKind string

// The kinds of tools.
const (
	KindRead       ToolKind = "read"
	KindEdit       ToolKind = "edit"
	KindDelete     ToolKind = "delete"
	KindMove       ToolKind = "move"
	KindSearch     ToolKind = "search"
	KindExecute    ToolKind = "execute"
	KindThink      ToolKind = "think"
	KindFetch      ToolKind = "fetch"
	KindSwitchMode ToolKind = "switch_mode"
	KindOther      ToolKind = "other"
)

// ToolKinds returns all kinds of tools.
func ToolKinds() []ToolKind {
	return []ToolKind{KindRead, KindEdit, KindDelete, KindMove, KindSearch, KindExecute, KindThink, KindFetch, KindSwitchMode, KindOther}
}

// ToolStatus is where a tool call stands.
type ToolStatus string

// The statuses of a tool call.
const (
	Pending    ToolStatus = "pending"
	InProgress ToolStatus = "in_progress"
	Completed  ToolStatus = "completed"
	Failed     ToolStatus = "failed"
)

// Ended reports whether a tool call with this status changes no more.
func (s ToolStatus) Ended() bool { return s == Completed || s == Failed }

// ToolDetails are the members that a tool call and an update of one share. In an update, an
// absent member (nil or empty) is unchanged; lists replace those before them.
type ToolDetails struct {
	// Name is the tool's name in programs.
	Name string `json:"name,omitempty"`
	// Kind is, absent from a tool call, other.
	Kind ToolKind `json:"kind,omitempty" wire:"notnull" enum:"read edit delete move search execute think fetch switch_mode other"`
	// Status is, absent from a tool call, pending.
	Status    ToolStatus      `json:"status,omitempty" wire:"notnull" enum:"pending in_progress completed failed"`
	Content   []ToolContent   `json:"content,omitzero"`
	Locations []ToolLocation  `json:"locations,omitzero"`
	RawInput  json.RawMessage `json:"rawInput,omitempty"`
	RawOutput json.RawMessage `json:"rawOutput,omitempty"`
	Meta      Meta            `json:"_meta,omitempty"`
}

// ToolCall is a new tool call.
type ToolCall struct {
	ToolCallID string `json:"toolCallId" wire:"required id"`
	Title      string `json:"title" wire:"required"`
	ToolDetails
}

// ToolCallUpdate changes a tool call, or describes the one that a permission is asked for.
type ToolCallUpdate struct {
	ToolCallID  string  `json:"toolCallId" wire:"required id"`
	Title       *string `json:"title,omitempty"` // nil is unchanged
	ToolDetails `wire:"null"`
}

// ToolLocation is a file that a tool call reads or changes. Agents write line 0 for "no line".
type ToolLocation struct {
	Path string  `json:"path" wire:"required reported"` // absolute
	Line *uint32 `json:"line,omitempty"`                // from 1
	Meta Meta    `json:"_meta,omitempty"`
}

// ToolContentType is the type of the content of a tool call.
type ToolContentType string

// The types of the content of a tool call.
const (
	Content  ToolContentType = "content"
	Diff     ToolContentType = "diff"
	Terminal ToolContentType = "terminal"
)

// ToolContent is content of a tool call. Its type says which members it has: Content; Path,
// OldText and NewText; TerminalID.
type ToolContent struct {
	Type       ToolContentType `json:"type" wire:"required kind" enum:"content diff terminal"`
	Meta       Meta            `json:"_meta"`
	Content    ContentBlock    `json:"content" of:"content!"`
	Path       string          `json:"path" wire:"reported" of:"diff!"` // absolute
	OldText    *string         `json:"oldText" of:"diff"`               // nil: the file is new
	NewText    string          `json:"newText" of:"diff!"`
	TerminalID string          `json:"terminalId" wire:"id" of:"terminal!"`
}

// TextContent returns a text as content of a tool call.
func TextContent(text string) ToolContent {
	return ToolContent{Type: Content, Content: TextBlock(text)}
}

func (l *ToolLocation) read(o *object) {
	if o.fields(l); l.Line != nil && *l.Line == 0 {
		l.Line = nil
	}
}

// MarshalJSON writes the members that the type has.
func (c ToolContent) MarshalJSON() ([]byte, error) { return written(string(c.Type), c) }
