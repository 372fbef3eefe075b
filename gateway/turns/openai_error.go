package turns

import (
	"cmp"
	"encoding/json"
	"net/http"

	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/wrapper"
)

// OpenAIError is a failure in the shape of OpenAI's APIs: an error in OpenAI's shape, with the refusal's members for models beside it.
func OpenAIError(f *Failure) []byte {
	type details struct {
		Message  string          `json:"message"`
		Type     string          `json:"type"`
		Param    *string         `json:"param"`
		Code     *string         `json:"code"`
		Callgate json.RawMessage `json:"callgate,omitempty"`
	}
	var d details
	if f.Upstream != nil {
		d = details{
			Message: f.Upstream.Why(),
			Type:    cmp.Or(f.Upstream.Type, errorType(f.Upstream.Status)), Param: nullable(f.Upstream.Param),
			Code: nullable(f.Upstream.Code),
		}
		if code := string(refusal.UpstreamUnavailable); d.Code == nil && f.Upstream.Status >= http.StatusInternalServerError {
			d.Code = &code
		}
	} else {
		code := string(f.Refused.Code)
		d = details{Message: f.Refused.Message, Type: refusedType(f), Param: nullable(f.Param), Code: &code, Callgate: f.Result}
		if d.Callgate == nil {
			result, _ := wrapper.Refusal(nil, f.Refused) // it holds text and numbers
			d.Callgate = result.Line
		}
	}
	body, err := wrapper.Marshal(map[string]details{"error": d})
	if err != nil {
		return []byte(`{"error":{"message":"Callgate failed.","type":"server_error","param":null,"code":"internal"}}`)
	}
	return body
}

func nullable(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// refusedType is the type of a refusal. A bound of a run is the operator's, though its status is that
// of a request: in a stream the type is all that an application sees beside the code.
func refusedType(f *Failure) string {
	if f.Refused.Code == refusal.BoundReached {
		return errorType(http.StatusInternalServerError)
	}
	return errorType(f.Status())
}

// errorType is the word that clients of OpenAI know for a status.
func errorType(status int) string {
	switch {
	case status == http.StatusUnauthorized:
		return "authentication_error"
	case status == http.StatusForbidden:
		return "permission_error"
	case status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case status >= http.StatusInternalServerError:
		return "server_error"
	}
	return "invalid_request_error"
}
