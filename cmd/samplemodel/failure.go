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
}

func failed(status int, param, format string, args ...any) *failure {
	return &failure{status, param, fmt.Sprintf(format, args...)}
}

// refuse writes a failure in OpenAI's shape.
func refuse(w http.ResponseWriter, f *failure) {
	var param *string
	if f.param != "" {
		param = &f.param
	}
	type inner struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	}
	answer(w, f.status, struct {
		Error inner `json:"error"`
	}{inner{f.message, "invalid_request_error", param, nil}})
}

// answer writes one JSON value.
func answer(w http.ResponseWriter, status int, value any) {
	body, err := json.Marshal(value)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":{"message":"internal","type":"server_error","param":null,"code":null}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	// A client that has left cannot be told anything.
	_, _ = w.Write(body)
}
