package wire

import "encoding/json"

// PromptRequest is the params of session/prompt.
type PromptRequest struct {
	SessionID string             `json:"sessionId"`
	Prompt    List[ContentBlock] `json:"prompt"`
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
	StopReason StopReason `json:"stopReason"`
	Meta       Meta       `json:"_meta,omitempty"`
}

// ReadPromptRequest reads the params of session/prompt.
func ReadPromptRequest(raw json.RawMessage) (PromptRequest, error) {
	return read(raw, drop, func(o *object) PromptRequest {
		return PromptRequest{o.rID("sessionId"), rObjects(o, "prompt", readContentBlock), o.meta()}
	})
}

// ReadPromptResponse reads the result of session/prompt.
func ReadPromptResponse(raw json.RawMessage) (PromptResponse, error) {
	return read(raw, drop, func(o *object) PromptResponse {
		reason := enum(o.at("stopReason"), o.required("stopReason"),
			StopEndTurn, StopMaxTokens, StopMaxTurnRequests, StopRefusal, StopCancelled)
		return PromptResponse{reason, o.meta()}
	})
}
