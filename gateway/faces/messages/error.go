package messages

import (
	"encoding/json"
	"net/http"

	"github.com/callgate/callgate/gateway/turns"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/wrapper"
)

// errorBody is an error in the API's shape (AM-60): that of the provider byte for byte, or ours,
// with the refusal's code and what the model reads of it in the details.
func errorBody(f *turns.Failure, requestID string) []byte {
	if f.Upstream != nil && f.Upstream.Body != nil {
		return f.Upstream.Body
	}
	type details struct {
		Code        string          `json:"error_code"`
		Param       string          `json:"param,omitempty"`
		Unsupported []string        `json:"unsupported,omitempty"`
		Callgate    json.RawMessage `json:"callgate,omitempty"`
	}
	type fault struct {
		Type    string  `json:"type"`
		Message string  `json:"message"`
		Details details `json:"details"`
	}
	body := struct {
		Type      string `json:"type"`
		Error     fault  `json:"error"`
		RequestID string `json:"request_id,omitempty"`
	}{Type: "error", RequestID: requestID}
	if f.Upstream != nil {
		body.Error = fault{errorType(f.Upstream.Status), f.Upstream.Why(), details{Code: string(refusal.UpstreamUnavailable)}}
	} else {
		d := details{Code: string(f.Refused.Code), Param: f.Param, Callgate: f.Result}
		if d.Callgate == nil {
			result, _ := wrapper.Refusal(nil, f.Refused) // it holds text and numbers
			d.Callgate = result.Line
		}
		if d.Code == string(refusal.BadRequest) && d.Param == threadMember {
			d.Code, d.Unsupported = threadUnsupported, []string{threadMember}
		}
		kind := errorType(f.Status())
		if f.Refused.Code == refusal.BoundReached { // the operator's, though its status is that of a request
			kind = errorType(http.StatusInternalServerError)
		}
		body.Error = fault{kind, f.Refused.Message, d}
	}
	raw, err := wrapper.Marshal(body)
	if err != nil {
		return []byte(`{"type":"error","error":{"type":"api_error","message":"Callgate failed.","details":{"error_code":"internal"}}}`)
	}
	return raw
}

// A request with a thread, where none is allowed, is refused as the API refuses it for a model
// without threads. The tool runners of the official clients ask for a thread first, and know
// this code: they then send the whole conversation.
const (
	threadMember      = "thread"
	threadUnsupported = "thread_unsupported_request"
)

// errorTypes are the words that clients know for statuses (AM-61).
var errorTypes = map[int]string{
	http.StatusUnauthorized:          "authentication_error",
	http.StatusPaymentRequired:       "billing_error",
	http.StatusForbidden:             "permission_error",
	http.StatusNotFound:              "not_found_error",
	http.StatusConflict:              "conflict_error",
	http.StatusRequestEntityTooLarge: "request_too_large",
	http.StatusTooManyRequests:       "rate_limit_error",
	http.StatusServiceUnavailable:    "overloaded_error",
	http.StatusGatewayTimeout:        "timeout_error",
	statusOverloaded:                 "overloaded_error",
}

// statusOverloaded is the status of the API for overload.
const statusOverloaded = 529

func errorType(status int) string {
	switch kind := errorTypes[status]; {
	case kind != "":
		return kind
	case status >= http.StatusInternalServerError:
		return "api_error"
	}
	return "invalid_request_error"
}

// statusOf is the status that stands for the type of an error event.
func statusOf(kind string) int {
	switch kind {
	case "invalid_request_error":
		return http.StatusBadRequest
	case "overloaded_error":
		return statusOverloaded
	}
	for status, known := range errorTypes {
		if known == kind {
			return status
		}
	}
	return http.StatusInternalServerError
}

// headerRequestID names the request on every answer of the API (AM-60).
const headerRequestID = "Request-Id"

// bad is a fault of the request, at a parameter.
func bad(param, format string, args ...any) *turns.Failure { return turns.Bad(param, format, args...) }
