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
		return notification[CancelRequestNotification](name), true
	}
	m := side(name)
	return m, m.ReadParams != nil
}

func agentMethods(name string) Method {
	switch name {
	case MethodInitialize:
		return request[InitializeRequest, InitializeResponse](name)
	case MethodAuthenticate:
		return request[AuthenticateRequest, EmptyResponse](name)
	case MethodLogout:
		return request[LogoutRequest, EmptyResponse](name)
	case MethodSessionNew:
		return request[NewSessionRequest, NewSessionResponse](name)
	case MethodSessionLoad:
		return Method{Name: name, ReadParams: boxed(ReadLoadSessionRequest), ReadResult: boxed(Read[OpenSessionResponse])}
	case MethodSessionResume:
		return request[OpenSessionRequest, OpenSessionResponse](name)
	case MethodSessionList:
		return request[ListSessionsRequest, ListSessionsResponse](name)
	case MethodSessionDelete, MethodSessionClose:
		return request[SessionRequest, EmptyResponse](name)
	case MethodSessionPrompt:
		return request[PromptRequest, PromptResponse](name)
	case MethodSessionCancel:
		return notification[SessionRequest](name)
	case MethodSessionSetMode:
		return request[SetModeRequest, EmptyResponse](name)
	case MethodSessionSetConfigOption:
		return request[SetConfigOptionRequest, SetConfigOptionResponse](name)
	}
	return Method{}
}

func clientMethods(name string) Method {
	switch name {
	case MethodSessionUpdate:
		return notification[SessionNotification](name)
	case MethodRequestPermission:
		return request[RequestPermissionRequest, RequestPermissionResponse](name)
	case MethodReadTextFile:
		return request[ReadTextFileRequest, ReadTextFileResponse](name)
	case MethodWriteTextFile:
		return request[WriteTextFileRequest, EmptyResponse](name)
	case MethodTerminalCreate:
		return request[CreateTerminalRequest, CreateTerminalResponse](name)
	case MethodTerminalOutput:
		return request[TerminalRequest, TerminalOutputResponse](name)
	case MethodTerminalWaitForExit:
		return request[TerminalRequest, TerminalExitStatus](name)
	case MethodTerminalKill, MethodTerminalRelease:
		return request[TerminalRequest, EmptyResponse](name)
	}
	return Method{}
}

func request[P, R any](name string) Method {
	return Method{Name: name, ReadParams: boxed(Read[P]), ReadResult: boxed(Read[R])}
}

func notification[P any](name string) Method {
	return Method{Name: name, Notification: true, ReadParams: boxed(Read[P])}
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
