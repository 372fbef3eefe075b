package main

import (
	"fmt"
	"net/http"
	"strconv"

	"github.com/go-json-experiment/json"
)

// failure is a refusal with its HTTP status. Its message never repeats a value
// of the request.
type failure struct {
	status         int
	param, message string
	code           string // the error_code of its details, in the Messages API
}

func failed(status int, param, format string, args ...any) *failure {
	return &failure{status: status, param: param, message: fmt.Sprintf(format, args...)}
}

// serverFailed is the message of a scripted error.
const serverFailed = "the scenario has an error here"

type openaiFailure struct {
	Error struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	} `json:"error"`
}

// newFailure is an error in OpenAI's shape.
func newFailure(status int, param, message string) openaiFailure {
	var f openaiFailure
	f.Error.Message, f.Error.Type = message, "invalid_request_error"
	switch {
	case status == http.StatusTooManyRequests:
		f.Error.Type = "rate_limit_error"
	case status >= http.StatusInternalServerError:
		f.Error.Type = "server_error"
	}
	if param != "" {
		f.Error.Param = &param
	}
	return f
}

// refuse writes a failure in OpenAI's shape.
func refuse(w http.ResponseWriter, f *failure) {
	answer(w, f.status, newFailure(f.status, f.param, f.message))
}

// answer writes one JSON value.
func answer(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		status, body = http.StatusInternalServerError,
			[]byte(`{"error":{"message":"internal","type":"server_error","param":null,"code":null}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	// A client that has left cannot be told anything.
	_, _ = w.Write(body)
}
