package wire

import "encoding/json"

// ReadSessionNotification reads the params of session/update.
func ReadSessionNotification(raw json.RawMessage) (SessionNotification, error) {
	return read(raw, drop, readSessionNotification)
}

// ReadReport is ReadSessionNotification for a reader that knows where relative paths start: those of
// content and locations of tool calls are left as they are, where they lead below that folder.
func ReadReport(raw json.RawMessage) (SessionNotification, error) {
	return read(raw, drop, func(o *object) SessionNotification {
		o.relative = true
		return readSessionNotification(o)
	})
}

func readSessionNotification(o *object) SessionNotification {
	return SessionNotification{o.rID("sessionId"), rObject(o, "update", readUpdate), o.meta()}
}

func readUpdate(o *object) Update {
	kind := enum(o.at("sessionUpdate"), o.required("sessionUpdate"),
		UpdateUserMessage, UpdateAgentMessage, UpdateAgentThought, UpdateToolCall, UpdateToolCallUpdate, UpdatePlan,
		UpdateAvailableCommands, UpdateCurrentMode, UpdateConfigOption, UpdateSessionInfo, UpdateUsage)
	switch kind {
	case UpdateToolCall:
		return readToolCall(o)
	case UpdateToolCallUpdate:
		return readToolCallUpdate(o)
	case UpdatePlan:
		return Plan{rObjects(o, "entries", readPlanEntry), o.meta()}
	case UpdateAvailableCommands:
		return AvailableCommandsUpdate{rObjects(o, "availableCommands", readCommand), o.meta()}
	case UpdateCurrentMode:
		return CurrentModeUpdate{o.rID("currentModeId"), o.meta()}
	case UpdateConfigOption:
		return ConfigOptionUpdate{rObjects(o, "configOptions", readConfigOption), o.meta()}
	case UpdateSessionInfo:
		return SessionInfoUpdate{o.cleared("title"), o.cleared("updatedAt"), o.meta()}
	case UpdateUsage:
		return UsageUpdate{o.rUint64("used"), o.rUint64("size"), oObject(o, "cost", readCost), o.meta()}
	}
	return MessageChunk{kind, rObject(o, "content", readContentBlock), o.oID("messageId"), o.meta()}
}

// cleared is nil for an absent member, and points to nil for null.
func (o *object) cleared(name string) **string {
	if o.optional(name) == nil {
		return nil
	}
	s := o.oString(name)
	return &s
}

func readPlanEntry(o *object) PlanEntry {
	return PlanEntry{
		Content:  o.rText("content"),
		Priority: enum(o.at("priority"), o.required("priority"), High, Medium, Low),
		Status:   enum(o.at("status"), o.required("status"), PlanPending, PlanInProgress, PlanCompleted),
		Meta:     o.meta(),
	}
}

func readCommand(o *object) Command {
	return Command{o.rText("name"), o.rText("description"), oObject(o, "input", readCommandInput), o.meta()}
}

func readCommandInput(o *object) CommandInput { return CommandInput{o.rText("hint"), o.meta()} }

func readCost(o *object) Cost {
	return Cost{o.at("amount").number(o.required("amount")), o.rText("currency"), o.meta()}
}
