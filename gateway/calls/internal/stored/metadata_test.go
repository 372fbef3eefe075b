package stored

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/callgate/callgate/gateway/events"
	"github.com/callgate/callgate/tool"
)

// TestEmptyMetadata: metadata are empty where none of their fields is set, whichever it is.
func TestEmptyMetadata(t *testing.T) {
	if m := (Metadata{}); !m.empty() || string(m.encode()) != "{}" || m.EncodeEnding() != nil {
		t.Errorf("no metadata: %s", m.EncodeEnding())
	}
	for i := range reflect.TypeFor[Metadata]().NumField() {
		var m Metadata
		field := reflect.ValueOf(&m).Elem().Field(i)
		switch field.Interface().(type) {
		case string:
			field.SetString("x")
		case bool:
			field.SetBool(true)
		case json.RawMessage:
			field.SetBytes([]byte("[]"))
		case []tool.Challenge:
			m.Challenges = make([]tool.Challenge, 1)
		case *tool.InputRequired:
			m.Questions = &tool.InputRequired{}
		case *ChoiceRequest:
			m.Choice = &ChoiceRequest{}
		case []EarlierChoice:
			m.EarlierChoices = make([]EarlierChoice, 1)
		case *events.Event:
			m.LastEvent = &events.Event{}
		default:
			t.Fatalf("a field of type %s", field.Type())
		}
		if name := reflect.TypeFor[Metadata]().Field(i).Name; m.empty() || m.EncodeEnding() == nil {
			t.Errorf("%s is set, and the metadata are empty", name)
		}
	}
}
