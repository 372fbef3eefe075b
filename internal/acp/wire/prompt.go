package wire

// PromptRequest is the params of session/prompt.
type PromptRequest struct {
	SessionID string             `json:"sessionId" wire:"required id"`
	Prompt    List[ContentBlock] `json:"prompt" wire:"required"`
	Meta      Meta               `json:"_meta,omitempty"`
}

// StopReason is why a turn has ended.
type StopReason string

// The reasons.
const (
	StopEndTurn         StopReason = "end_turn"
	StopMaxTokens       StopReason = "max_tokens"
	StopMaxTurnRequests StopReason = "max_turn_requests"
	StopRefusal         StopReason = "refusal"
	StopCancelled       StopReason = "cancelled"
)

// PromptResponse is the result of session/prompt.
type PromptResponse struct {
	StopReason StopReason `json:"stopReason" wire:"required" enum:"end_turn max_tokens max_turn_requests refusal cancelled"`
	Meta       Meta       `json:"_meta,omitempty"`
}
