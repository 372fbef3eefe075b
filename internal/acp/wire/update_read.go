package wire

import "encoding/json"

// ReadReport reads the params of session/update for a reader that knows where relative paths start: those of
// content and locations of tool calls are left as they are, where they lead below that folder.
func ReadReport(raw json.RawMessage) (SessionNotification, error) {
	return read[SessionNotification](raw, &state{relative: true})
}

func (n *SessionNotification) read(o *object) {
	o.fields(n)
	raw := o.required("update")
	if raw == nil {
		return
	}
	var head struct {
		Kind UpdateKind `json:"sessionUpdate" wire:"required" enum:"user_message_chunk agent_message_chunk agent_thought_chunk tool_call tool_call_update plan available_commands_update current_mode_update config_option_update session_info_update usage_update"`
	}
	u := o.at("update").object(raw)
	u.fields(&head)
	switch head.Kind {
	case UpdateToolCall:
		n.Update = update(u, ToolCall{})
	case UpdateToolCallUpdate:
		n.Update = update(u, ToolCallUpdate{})
	case UpdatePlan:
		n.Update = update(u, Plan{})
	case UpdateAvailableCommands:
		n.Update = update(u, AvailableCommandsUpdate{})
	case UpdateCurrentMode:
		n.Update = update(u, CurrentModeUpdate{})
	case UpdateConfigOption:
		n.Update = update(u, ConfigOptionUpdate{})
	case UpdateSessionInfo:
		n.Update = update(u, SessionInfoUpdate{})
	case UpdateUsage:
		n.Update = update(u, UsageUpdate{})
	default:
		n.Update = update(u, MessageChunk{Kind: head.Kind})
	}
}

func update[T Update](o *object, u T) T {
	o.fields(&u)
	return u
}
