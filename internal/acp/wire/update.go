package wire

import (
	"encoding/json"
	"errors"
)

// UpdateKind is the kind of an update of a session.
type UpdateKind string

// The kinds of updates.
const (
	UpdateUserMessage       UpdateKind = "user_message_chunk"
	UpdateAgentMessage      UpdateKind = "agent_message_chunk"
	UpdateAgentThought      UpdateKind = "agent_thought_chunk"
	UpdateToolCall          UpdateKind = "tool_call"
	UpdateToolCallUpdate    UpdateKind = "tool_call_update"
	UpdatePlan              UpdateKind = "plan"
	UpdateAvailableCommands UpdateKind = "available_commands_update"
	UpdateCurrentMode       UpdateKind = "current_mode_update"
	UpdateConfigOption      UpdateKind = "config_option_update"
	UpdateSessionInfo       UpdateKind = "session_info_update"
	UpdateUsage             UpdateKind = "usage_update"
)

// Update is an update of a session: a MessageChunk, ToolCall, ToolCallUpdate, Plan,
// AvailableCommandsUpdate, CurrentModeUpdate, ConfigOptionUpdate, SessionInfoUpdate or
// UsageUpdate.
type Update interface{ UpdateKind() UpdateKind }

// SessionNotification is the params of session/update.
type SessionNotification struct {
	SessionID string `json:"sessionId" wire:"required id"`
	Update    Update `json:"update" wire:"-"`
	Meta      Meta   `json:"_meta,omitempty"`
}

// MessageChunk is a piece of a message of the user, of the agent, or of the agent's reasoning.
type MessageChunk struct {
	Kind      UpdateKind   `json:"-"`
	Content   ContentBlock `json:"content" wire:"required"`
	MessageID string       `json:"messageId,omitempty" wire:"id"`
	Meta      Meta         `json:"_meta,omitempty"`
}

// AgentMessage returns a piece of the agent's message.
func AgentMessage(text string) MessageChunk {
	return MessageChunk{Kind: UpdateAgentMessage, Content: TextBlock(text)}
}

// AgentThought returns a piece of the agent's reasoning.
func AgentThought(text string) MessageChunk {
	return MessageChunk{Kind: UpdateAgentThought, Content: TextBlock(text)}
}

// PlanPriority is how important an entry of a plan is.
type PlanPriority string

// The priorities.
const (
	High   PlanPriority = "high"
	Medium PlanPriority = "medium"
	Low    PlanPriority = "low"
)

// PlanStatus is where an entry of a plan stands.
type PlanStatus string

// The statuses of an entry of a plan.
const (
	PlanPending    PlanStatus = "pending"
	PlanInProgress PlanStatus = "in_progress"
	PlanCompleted  PlanStatus = "completed"
)

// Plan is all entries of a plan.
type Plan struct {
	Entries List[PlanEntry] `json:"entries" wire:"required"`
	Meta    Meta            `json:"_meta,omitempty"`
}

// PlanEntry is one step of a plan.
type PlanEntry struct {
	Content  string       `json:"content" wire:"required"`
	Priority PlanPriority `json:"priority" wire:"required" enum:"high medium low"`
	Status   PlanStatus   `json:"status" wire:"required" enum:"pending in_progress completed"`
	Meta     Meta         `json:"_meta,omitempty"`
}

// AvailableCommandsUpdate is all commands that a user may write.
type AvailableCommandsUpdate struct {
	AvailableCommands List[Command] `json:"availableCommands" wire:"required"`
	Meta              Meta          `json:"_meta,omitempty"`
}

// Command is a command that a user may write.
type Command struct {
	Name        string        `json:"name" wire:"required"`
	Description string        `json:"description" wire:"required"`
	Input       *CommandInput `json:"input,omitempty"`
	Meta        Meta          `json:"_meta,omitempty"`
}

// CommandInput is the hint for the text behind a command.
type CommandInput struct {
	Hint string `json:"hint" wire:"required"`
	Meta Meta   `json:"_meta,omitempty"`
}

// CurrentModeUpdate says that the agent has changed its mode.
type CurrentModeUpdate struct {
	CurrentModeID string `json:"currentModeId" wire:"required id"`
	Meta          Meta   `json:"_meta,omitempty"`
}

// ConfigOptionUpdate is all options of a session with their values.
type ConfigOptionUpdate struct {
	ConfigOptions List[ConfigOption] `json:"configOptions" wire:"required"`
	Meta          Meta               `json:"_meta,omitempty"`
}

// SessionInfoUpdate changes the title and the time of a session. An absent member, which is
// nil, is unchanged; a pointer to nil clears it.
type SessionInfoUpdate struct {
	Title     **string `json:"title,omitempty"`
	UpdatedAt **string `json:"updatedAt,omitempty"`
	Meta      Meta     `json:"_meta,omitempty"`
}

// UsageUpdate says how full the context is, in tokens.
type UsageUpdate struct {
	Used uint64 `json:"used" wire:"required"`
	Size uint64 `json:"size" wire:"required"`
	Cost *Cost  `json:"cost,omitempty"`
	Meta Meta   `json:"_meta,omitempty"`
}

// Cost is an amount of money.
type Cost struct {
	Amount   json.Number `json:"amount" wire:"required"`
	Currency string      `json:"currency" wire:"required"`
	Meta     Meta        `json:"_meta,omitempty"`
}

// UpdateKind is the kind of the chunk.
func (c MessageChunk) UpdateKind() UpdateKind { return c.Kind }

// UpdateKind is tool_call.
func (ToolCall) UpdateKind() UpdateKind { return UpdateToolCall }

// UpdateKind is tool_call_update.
func (ToolCallUpdate) UpdateKind() UpdateKind { return UpdateToolCallUpdate }

// UpdateKind is plan.
func (Plan) UpdateKind() UpdateKind { return UpdatePlan }

// UpdateKind is available_commands_update.
func (AvailableCommandsUpdate) UpdateKind() UpdateKind { return UpdateAvailableCommands }

// UpdateKind is current_mode_update.
func (CurrentModeUpdate) UpdateKind() UpdateKind { return UpdateCurrentMode }

// UpdateKind is config_option_update.
func (ConfigOptionUpdate) UpdateKind() UpdateKind { return UpdateConfigOption }

// UpdateKind is session_info_update.
func (SessionInfoUpdate) UpdateKind() UpdateKind { return UpdateSessionInfo }

// UpdateKind is usage_update.
func (UsageUpdate) UpdateKind() UpdateKind { return UpdateUsage }

// MarshalJSON writes the update with its kind.
func (n SessionNotification) MarshalJSON() ([]byte, error) {
	if n.Update == nil {
		return nil, errors.New("an update of a session is missing")
	}
	update, err := json.Marshal(n.Update)
	if err != nil {
		return nil, err
	}
	kind, err := json.Marshal(n.Update.UpdateKind())
	if err != nil {
		return nil, err
	}
	tagged := append([]byte(`{"sessionUpdate":`), kind...)
	if len(update) > len("{}") {
		tagged = append(tagged, ',')
	}
	type plain SessionNotification
	return json.Marshal(struct {
		plain
		Update json.RawMessage `json:"update"`
	}{plain(n), append(tagged, update[1:]...)})
}
