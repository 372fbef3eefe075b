package wire

import (
	"encoding/json"
	"math"
)

// ReadTextFileRequest is the params of fs/read_text_file.
type ReadTextFileRequest struct {
	SessionID string  `json:"sessionId"`
	Path      string  `json:"path"`            // absolute
	Line      *uint32 `json:"line,omitempty"`  // from 1; nil is the first
	Limit     *uint32 `json:"limit,omitempty"` // in lines; nil is all
	Meta      Meta    `json:"_meta,omitempty"`
}

// ReadTextFileResponse is its result.
type ReadTextFileResponse struct {
	Content string `json:"content"`
	Meta    Meta   `json:"_meta,omitempty"`
}

// WriteTextFileRequest is the params of fs/write_text_file.
type WriteTextFileRequest struct {
	SessionID string `json:"sessionId"`
	Path      string `json:"path"` // absolute
	Content   string `json:"content"`
	Meta      Meta   `json:"_meta,omitempty"`
}

// CreateTerminalRequest is the params of terminal/create.
type CreateTerminalRequest struct {
	SessionID       string        `json:"sessionId"`
	Command         string        `json:"command"`
	Args            []string      `json:"args,omitzero"`
	Env             []EnvVariable `json:"env,omitzero"`
	Cwd             string        `json:"cwd,omitempty"` // absolute
	OutputByteLimit *uint64       `json:"outputByteLimit,omitempty"`
	Meta            Meta          `json:"_meta,omitempty"`
}

// EnvVariable is a variable of an environment.
type EnvVariable struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Meta  Meta   `json:"_meta,omitempty"`
}

// CreateTerminalResponse is the result of terminal/create.
type CreateTerminalResponse struct {
	TerminalID string `json:"terminalId"`
	Meta       Meta   `json:"_meta,omitempty"`
}

// TerminalRequest is the params of terminal/output, /wait_for_exit, /kill and /release.
type TerminalRequest struct {
	SessionID  string `json:"sessionId"`
	TerminalID string `json:"terminalId"`
	Meta       Meta   `json:"_meta,omitempty"`
}

// TerminalOutputResponse is the result of terminal/output.
type TerminalOutputResponse struct {
	Output     string              `json:"output"`
	Truncated  bool                `json:"truncated"`
	ExitStatus *TerminalExitStatus `json:"exitStatus,omitempty"` // nil: it still runs
	Meta       Meta                `json:"_meta,omitempty"`
}

// TerminalExitStatus is how a command ended, and the result of terminal/wait_for_exit.
type TerminalExitStatus struct {
	ExitCode *uint32 `json:"exitCode,omitempty"`
	Signal   *string `json:"signal,omitempty"`
	Meta     Meta    `json:"_meta,omitempty"`
}

// EmptyResponse is the result of a method that returns nothing.
type EmptyResponse struct {
	Meta Meta `json:"_meta,omitempty"`
}

// ReadReadTextFileRequest reads the params of fs/read_text_file.
func ReadReadTextFileRequest(raw json.RawMessage) (ReadTextFileRequest, error) {
	return read(raw, refuse, func(o *object) ReadTextFileRequest {
		return ReadTextFileRequest{o.rID("sessionId"), o.rPath("path"), o.oUint32("line", 1), o.oUint32("limit", 0), o.meta()}
	})
}

// ReadReadTextFileResponse reads the result of fs/read_text_file.
func ReadReadTextFileResponse(raw json.RawMessage) (ReadTextFileResponse, error) {
	return read(raw, drop, func(o *object) ReadTextFileResponse {
		return ReadTextFileResponse{o.rText("content"), o.meta()}
	})
}

// ReadWriteTextFileRequest reads the params of fs/write_text_file.
func ReadWriteTextFileRequest(raw json.RawMessage) (WriteTextFileRequest, error) {
	return read(raw, refuse, func(o *object) WriteTextFileRequest {
		return WriteTextFileRequest{o.rID("sessionId"), o.rPath("path"), o.rText("content"), o.meta()}
	})
}

// ReadCreateTerminalRequest reads the params of terminal/create. No variable is named twice.
func ReadCreateTerminalRequest(raw json.RawMessage) (CreateTerminalRequest, error) {
	return read(raw, refuse, func(o *object) CreateTerminalRequest {
		return CreateTerminalRequest{
			SessionID:       o.rID("sessionId"),
			Command:         o.rText("command"),
			Args:            o.texts("args"),
			Env:             readEnv(o, o.optional("env")),
			Cwd:             o.oPath("cwd"),
			OutputByteLimit: o.oWhole("outputByteLimit", 0, math.MaxUint64),
			Meta:            o.meta(),
		}
	})
}

func readEnv(o *object, raw json.RawMessage) []EnvVariable {
	env := objects(o, "env", raw, func(o *object) EnvVariable {
		return EnvVariable{o.rText("name"), o.rText("value"), o.meta()}
	})
	names := map[string]bool{}
	for i, v := range env {
		if names[v.Name] {
			o.at("env").element(i).fail("a name that no other variable has", "one that stands twice")
		}
		names[v.Name] = true
	}
	return env
}

// ReadCreateTerminalResponse reads the result of terminal/create.
func ReadCreateTerminalResponse(raw json.RawMessage) (CreateTerminalResponse, error) {
	return read(raw, drop, func(o *object) CreateTerminalResponse {
		return CreateTerminalResponse{o.rID("terminalId"), o.meta()}
	})
}

// ReadTerminalRequest reads the params of the methods of a terminal that exists.
func ReadTerminalRequest(raw json.RawMessage) (TerminalRequest, error) {
	return read(raw, refuse, func(o *object) TerminalRequest {
		return TerminalRequest{o.rID("sessionId"), o.rID("terminalId"), o.meta()}
	})
}

// ReadTerminalOutputResponse reads the result of terminal/output.
func ReadTerminalOutputResponse(raw json.RawMessage) (TerminalOutputResponse, error) {
	return read(raw, drop, func(o *object) TerminalOutputResponse {
		return TerminalOutputResponse{
			Output:     o.rText("output"),
			Truncated:  o.at("truncated").boolean(o.required("truncated")),
			ExitStatus: oObject(o, "exitStatus", readExitStatus),
			Meta:       o.meta(),
		}
	})
}

// ReadTerminalExitStatus reads the result of terminal/wait_for_exit.
func ReadTerminalExitStatus(raw json.RawMessage) (TerminalExitStatus, error) {
	return read(raw, drop, readExitStatus)
}

func readExitStatus(o *object) TerminalExitStatus {
	return TerminalExitStatus{o.oUint32("exitCode", 0), o.oString("signal"), o.meta()}
}

// ReadEmptyResponse reads the result of a method that returns nothing. Null is one.
func ReadEmptyResponse(raw json.RawMessage) (EmptyResponse, error) {
	return read(raw, drop, func(o *object) EmptyResponse { return EmptyResponse{o.meta()} })
}
