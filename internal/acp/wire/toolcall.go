package wire

import (
	"encoding/json"
	"fmt"
)

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
	Name      string          `json:"name,omitempty"`   // the tool's name in programs
	Kind      ToolKind        `json:"kind,omitempty"`   // of a tool call, absent is other
	Status    ToolStatus      `json:"status,omitempty"` // of a tool call, absent is pending
	Content   []ToolContent   `json:"content,omitzero"`
	Locations []ToolLocation  `json:"locations,omitzero"`
	RawInput  json.RawMessage `json:"rawInput,omitempty"`
	RawOutput json.RawMessage `json:"rawOutput,omitempty"`
	Meta      Meta            `json:"_meta,omitempty"`
}

// ToolCall is a new tool call.
type ToolCall struct {
	ToolCallID string `json:"toolCallId"`
	Title      string `json:"title"`
	ToolDetails
}

// ToolCallUpdate changes a tool call, or describes the one that a permission is asked for.
type ToolCallUpdate struct {
	ToolCallID string  `json:"toolCallId"`
	Title      *string `json:"title,omitempty"` // nil is unchanged
	ToolDetails
}

// ToolLocation is a file that a tool call reads or changes.
type ToolLocation struct {
	Path string  `json:"path"`           // absolute
	Line *uint32 `json:"line,omitempty"` // from 1
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
	Type       ToolContentType
	Content    ContentBlock
	Path       string  // absolute
	OldText    *string // nil: the file is new
	NewText    string
	TerminalID string
	Meta       Meta
}

// TextContent returns a text as content of a tool call.
func TextContent(text string) ToolContent {
	return ToolContent{Type: Content, Content: TextBlock(text)}
}

func readToolCall(o *object) ToolCall {
	return ToolCall{o.rID("toolCallId"), o.rText("title"), readToolDetails(o, o.optional)}
}

func readToolCallUpdate(o *object) ToolCallUpdate {
	return ToolCallUpdate{o.rID("toolCallId"), o.oString("title"), readToolDetails(o, o.nullable)}
}

// readToolDetails reads the members by a method of o: in an update they may be null.
func readToolDetails(o *object, member func(name string) json.RawMessage) ToolDetails {
	return ToolDetails{
		Name:      o.oText("name"),
		Kind:      enum(o.at("kind"), member("kind"), ToolKinds()...),
		Status:    enum(o.at("status"), member("status"), Pending, InProgress, Completed, Failed),
		Content:   objects(o, "content", member("content"), readToolContent),
		Locations: objects(o, "locations", member("locations"), readToolLocation),
		RawInput:  o.any("rawInput"),
		RawOutput: o.any("rawOutput"),
		Meta:      o.meta(),
	}
}

// readToolLocation reads line 0, which agents write for "no line", as none.
func readToolLocation(o *object) ToolLocation {
	l := ToolLocation{Path: o.at("path").reportedPath(o.required("path")), Line: o.oUint32("line", 0), Meta: o.meta()}
	if l.Line != nil && *l.Line == 0 {
		l.Line = nil
	}
	return l
}

func readToolContent(o *object) ToolContent {
	c := ToolContent{Type: enum(o.at("type"), o.required("type"), Content, Diff, Terminal), Meta: o.meta()}
	switch c.Type {
	case Content:
		c.Content = rObject(o, "content", readContentBlock)
	case Diff:
		c.Path, c.OldText, c.NewText = o.at("path").reportedPath(o.required("path")), o.oString("oldText"), o.rText("newText")
	case Terminal:
		c.TerminalID = o.rID("terminalId")
	}
	return c
}

// MarshalJSON writes the members that the type has.
func (c ToolContent) MarshalJSON() ([]byte, error) {
	type common struct {
		Type ToolContentType `json:"type"`
		Meta Meta            `json:"_meta,omitempty"`
	}
	head := common{c.Type, c.Meta}
	switch c.Type {
	case Content:
		return json.Marshal(struct {
			common
			Content ContentBlock `json:"content"`
		}{head, c.Content})
	case Diff:
		return json.Marshal(struct {
			common
			Path    string  `json:"path"`
			OldText *string `json:"oldText,omitempty"`
			NewText string  `json:"newText"`
		}{head, c.Path, c.OldText, c.NewText})
	case Terminal:
		return json.Marshal(struct {
			common
			TerminalID string `json:"terminalId"`
		}{head, c.TerminalID})
	}
	return nil, fmt.Errorf("%q is no type of the content of a tool call", c.Type)
}
