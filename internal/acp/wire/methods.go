package wire

import "encoding/json"

// Method is one method: how its params and its result are read. Its readers return a
// struct of this package, which encoding/json writes valid by the schema.
type Method struct {
	Name         string
	Notification bool // there is no result
	ReadParams   func(json.RawMessage) (any, error)
	ReadResult   func(json.RawMessage) (any, error) // nil of a notification
}

// AgentMethod returns a method that agents implement; ok is false if the protocol has none of
// that name. A method of either side, $/cancel_request, is one.
func AgentMethod(name string) (m Method, ok bool) {
	m, ok = methods(agentMethods, name)
	return m, ok
}

// ClientMethod returns a method that clients implement, as AgentMethod does.
func ClientMethod(name string) (m Method, ok bool) {
	m, ok = methods(clientMethods, name)
	return m, ok
}

func methods(side func(string) Method, name string) (Method, bool) {
	if name == MethodCancelRequest {
		return notification(name, ReadCancelRequestNotification), true
	}
	m := side(name)
	return m, m.ReadParams != nil
}

func agentMethods(name string) Method {
	switch name {
	case MethodInitialize:
		return request(name, ReadInitializeRequest, ReadInitializeResponse)
	case MethodAuthenticate:
		return request(name, ReadAuthenticateRequest, ReadEmptyResponse)
	case MethodLogout:
		return request(name, ReadLogoutRequest, ReadEmptyResponse)
	case MethodSessionNew:
		return request(name, ReadNewSessionRequest, ReadNewSessionResponse)
	case MethodSessionLoad:
		return request(name, ReadLoadSessionRequest, ReadOpenSessionResponse)
	case MethodSessionResume:
		return request(name, ReadResumeSessionRequest, ReadOpenSessionResponse)
	case MethodSessionList:
		return request(name, ReadListSessionsRequest, ReadListSessionsResponse)
	case MethodSessionDelete, MethodSessionClose:
		return request(name, ReadSessionRequest, ReadEmptyResponse)
	case MethodSessionPrompt:
		return request(name, ReadPromptRequest, ReadPromptResponse)
	case MethodSessionCancel:
		return notification(name, ReadSessionRequest)
	case MethodSessionSetMode:
		return request(name, ReadSetModeRequest, ReadEmptyResponse)
	case MethodSessionSetConfigOption:
		return request(name, ReadSetConfigOptionRequest, ReadSetConfigOptionResponse)
	}
	return Method{}
}

func clientMethods(name string) Method {
	switch name {
	case MethodSessionUpdate:
		return notification(name, ReadSessionNotification)
	case MethodRequestPermission:
		return request(name, ReadRequestPermissionRequest, ReadRequestPermissionResponse)
	case MethodReadTextFile:
		return request(name, ReadReadTextFileRequest, ReadReadTextFileResponse)
	case MethodWriteTextFile:
		return request(name, ReadWriteTextFileRequest, ReadEmptyResponse)
	case MethodTerminalCreate:
		return request(name, ReadCreateTerminalRequest, ReadCreateTerminalResponse)
	case MethodTerminalOutput:
		return request(name, ReadTerminalRequest, ReadTerminalOutputResponse)
	case MethodTerminalWaitForExit:
		return request(name, ReadTerminalRequest, ReadTerminalExitStatus)
	case MethodTerminalKill, MethodTerminalRelease:
		return request(name, ReadTerminalRequest, ReadEmptyResponse)
	case MethodElicitationCreate:
		return request(name, ReadCreateElicitationRequest, ReadCreateElicitationResponse)
	case MethodElicitationComplete:
		return notification(name, ReadCompleteElicitationNotification)
	}
	return Method{}
}

func request[P, R any](name string, params func(json.RawMessage) (P, error), result func(json.RawMessage) (R, error)) Method {
	return Method{Name: name, ReadParams: boxed(params), ReadResult: boxed(result)}
}

func notification[P any](name string, params func(json.RawMessage) (P, error)) Method {
	return Method{Name: name, Notification: true, ReadParams: boxed(params)}
}

// boxed returns nil for a value that could not be read.
func boxed[T any](read func(json.RawMessage) (T, error)) func(json.RawMessage) (any, error) {
	return func(raw json.RawMessage) (any, error) {
		value, err := read(raw)
		if err != nil {
			return nil, err
		}
		return value, nil
	}
}
