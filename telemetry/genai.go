package telemetry

import "go.opentelemetry.io/otel/attribute"

// The names that OpenTelemetry's semantic conventions give to the execution of a
// tool. Those for generative AI are in development: they are written down here
// once, and not taken from a module whose next version may rename them.
const (
	operationKey     attribute.Key = "gen_ai.operation.name"
	toolNameKey      attribute.Key = "gen_ai.tool.name"
	toolTypeKey      attribute.Key = "gen_ai.tool.type"
	toolCallIDKey    attribute.Key = "gen_ai.tool.call.id"
	toolArgumentsKey attribute.Key = "gen_ai.tool.call.arguments"
	toolResultKey    attribute.Key = "gen_ai.tool.call.result"
	agentNameKey     attribute.Key = "gen_ai.agent.name"
	conversationKey  attribute.Key = "gen_ai.conversation.id"
	errorTypeKey     attribute.Key = "error.type"

	executeTool  = "execute_tool"
	typeFunction = "function"
)

// The names of Callgate's own, in the words of the audit log.
const (
	callIDKey    attribute.Key = "callgate.call_id"
	modeKey      attribute.Key = "callgate.mode"
	verdictKey   attribute.Key = "callgate.verdict"
	stageKey     attribute.Key = "callgate.stage"
	codeKey      attribute.Key = "callgate.code"
	outcomeKey   attribute.Key = "callgate.outcome"
	attemptsKey  attribute.Key = "callgate.attempts"
	digestKey    attribute.Key = "callgate.config_digest"
	workspaceKey attribute.Key = "callgate.workspace"
	projectKey   attribute.Key = "callgate.project"
	versionKey   attribute.Key = "callgate.tool_version"
)

// judgeSpan names the span of a completion that names no tool that is registered.
const judgeSpan = "judge"

// RecordKey returns the name that the attribute of a member of the audit log has: that of the
// same attribute of a span, where it has one.
func RecordKey(member string) string {
	switch member {
	case "tool":
		return string(toolNameKey)
	case "agent":
		return string(agentNameKey)
	case "thread":
		return string(conversationKey)
	}
	return "callgate." + member
}
