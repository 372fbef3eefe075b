package responses

import (
	"slices"

	"github.com/callgate/callgate/gateway/faces/responses/internal/emit"
	"github.com/callgate/callgate/internal/rawjson"
	"github.com/callgate/callgate/upstream/responses"
)

// outputTypes are the types of results, by those of the calls that they answer (RS-16).
var outputTypes = map[string]string{
	"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output", "shell_call": "shell_call_output",
	"local_shell_call": "local_shell_call_output", "apply_patch_call": "apply_patch_call_output", "computer_call": "computer_call_output",
}

// callTypes are the types of calls, by those of their results.
var callTypes = func() map[string]string {
	all := map[string]string{}
	for call, output := range outputTypes {
		all[output] = call
	}
	return all
}()

// isOfModel reports whether an item of the input was made by a model: the conversation has gone on
// with it. Items by which the caller is asked are not counted: a client may answer one by one.
func isOfModel(kind string, o rawjson.Object) bool {
	switch kind {
	case "", "message":
		role, _ := rawjson.String(o.Get("role"))
		return role == "assistant"
	case emit.RequestType, emit.ResponseType, "configuration_update", "additional_tools", "compaction_trigger":
		return false
	}
	return callTypes[kind] == ""
}

// resultItem is the result of a call, in its own type.
func resultItem(item *responses.Item, text []byte, failed bool) []byte {
	quoted := rawjson.Quote(text)
	o := rawjson.Object{rawjson.Field("type", rawjson.Quote(outputTypes[item.Type])), rawjson.Field("call_id", rawjson.Quote(item.Call.ID))}
	switch item.Type {
	case "shell_call":
		code := "0"
		if failed {
			code = "1"
		}
		outcome := rawjson.Object{rawjson.Field("type", rawjson.Quote("exit")), rawjson.Field("exit_code", []byte(code))}
		part := rawjson.Object{rawjson.Field("stdout", quoted), rawjson.Field("stderr", rawjson.Quote(""))}
		part = append(part, rawjson.Field("outcome", outcome.Bytes()))
		return append(o, rawjson.Field("output", slices.Concat([]byte{'['}, part.Bytes(), []byte{']'}))).Bytes()
	case "apply_patch_call":
		status := "completed"
		if failed {
			status = "failed"
		}
		o = append(o, rawjson.Field("status", rawjson.Quote(status)))
	}
	return append(o, rawjson.Field("output", quoted)).Bytes()
}
