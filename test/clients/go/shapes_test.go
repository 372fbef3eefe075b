package clients_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
)

// asked is one shape of ../shapes/shapes.json as this client asks it: it returns what it sees.
type asked func(ctx context.Context, c openai.Client, model string) (string, error)

// chatOf is a chat completion, with changes of its request.
func chatOf(change func(*openai.ChatCompletionNewParams)) asked {
	return func(ctx context.Context, c openai.Client, model string) (string, error) {
		q := openai.ChatCompletionNewParams{Model: model, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Please.")}}
		if change != nil {
			change(&q)
		}
		got, err := c.Chat.Completions.New(ctx, q)
		if err != nil {
			return "", err
		}
		seen := got.Choices[0].Message.Content
		for _, call := range got.Choices[0].Message.ToolCalls {
			seen += call.Function.Name + call.Function.Arguments
		}
		return seen, nil
	}
}

func functionTool(name string) openai.ChatCompletionToolUnionParam {
	return openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{Name: name, Parameters: shared.FunctionParameters{
		"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}},
	}})
}

// askLoop lets the model call the tools of the other tests until it answers in text.
func askLoop(ctx context.Context, c openai.Client, model string) (string, error) {
	q := openai.ChatCompletionNewParams{
		Model: model, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Please.")},
		Tools: []openai.ChatCompletionToolUnionParam{functionTool("math_evaluate"), functionTool("web_search"), functionTool("files_read")},
	}
	results := map[string]string{
		"math_evaluate": `{"value":5}`, "web_search": `{"results":[{"title":"Two tides a day","url":"https://example.com/tides"}]}`, "files_read": `{"text":"# Notes"}`,
	}
	for range 6 {
		got, err := c.Chat.Completions.New(ctx, q)
		if err != nil {
			return "", err
		}
		m := got.Choices[0].Message
		if len(m.ToolCalls) == 0 {
			return m.Content, nil
		}
		q.Messages = append(q.Messages, m.ToParam())
		for _, call := range m.ToolCalls {
			q.Messages = append(q.Messages, openai.ToolMessage(results[call.Function.Name], call.ID))
		}
	}
	return "", errors.New("the model does not come to an end")
}

func askStream(ctx context.Context, c openai.Client, model string) (string, error) {
	s := c.Chat.Completions.NewStreaming(ctx, openai.ChatCompletionNewParams{Model: model, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Please.")}})
	var text strings.Builder
	for s.Next() {
		for _, choice := range s.Current().Choices {
			text.WriteString(choice.Delta.Content)
		}
	}
	return text.String(), s.Err()
}

func askResponses(ctx context.Context, c openai.Client, model string) (string, error) {
	got, err := c.Responses.New(ctx, responses.ResponseNewParams{
		Model: model, Store: openai.Bool(false), Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("Please.")},
	})
	if err != nil {
		return "", err
	}
	return got.OutputText(), nil
}

func askModels(ctx context.Context, c openai.Client, _ string) (string, error) {
	pages := c.Models.ListAutoPaging(ctx)
	for pages.Next() {
		if pages.Current().ID == "text" {
			return "text", nil
		}
	}
	return "", pages.Err()
}

func askEmbeddings(ctx context.Context, c openai.Client, model string) (string, error) {
	_, err := c.Embeddings.New(ctx, openai.EmbeddingNewParams{Model: model, Input: openai.EmbeddingNewParamsInputUnion{OfString: openai.String("tides")}})
	return "", err
}

var shapes = map[string]asked{
	"go-text":     chatOf(nil),
	"go-stream":   askStream,
	"go-loop":     askLoop,
	"go-parallel": askLoop,
	"go-json-schema": chatOf(func(q *openai.ChatCompletionNewParams) {
		q.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
			Name: "tides", Strict: openai.Bool(true), Schema: map[string]any{
				"type": "object", "properties": map[string]any{"rises": map[string]any{"type": "integer"}, "body": map[string]any{"type": "string"}},
				"required": []string{"rises", "body"}, "additionalProperties": false,
			},
		}}
	}),
	"go-brought":         chatOf(func(q *openai.ChatCompletionNewParams) { q.Tools = append(q.Tools, functionTool("get_weather")) }),
	"go-brought-request": chatOf(func(q *openai.ChatCompletionNewParams) { q.Tools = append(q.Tools, functionTool("get_weather")) }),
	"go-refused":         chatOf(func(q *openai.ChatCompletionNewParams) { q.Tools = append(q.Tools, functionTool("math_evaluate")) }),
	"go-custom-tool": chatOf(func(q *openai.ChatCompletionNewParams) {
		q.Tools = append(q.Tools, openai.ChatCompletionCustomTool(openai.ChatCompletionCustomToolCustomParam{Name: "run_code"}))
	}),
	"go-embeddings":        askEmbeddings,
	"go-models":            askModels,
	"go-responses":         askResponses,
	"go-responses-of-chat": askResponses,
}

// TestShapes prints how each shape of this client ends, one line of JSON each; TestShapes of
// the folder above looks at them.
func TestShapes(t *testing.T) {
	root := os.Getenv("SHAPES_ADDRESS")
	if root == "" {
		t.Skip("SHAPES_ADDRESS is not set: TestShapes of the folder above sets it")
	}
	data, err := os.ReadFile("../shapes/shapes.json")
	if err != nil {
		t.Fatal(err)
	}
	var table []struct{ ID, Client, Model string }
	if err := json.Unmarshal(data, &table); err != nil {
		t.Fatal(err)
	}
	for _, s := range table {
		if s.Client != "go" {
			continue
		}
		ask, known := shapes[s.ID]
		if !known {
			t.Errorf("%s is not a shape of this client", s.ID)
			continue
		}
		if s.Model == "" {
			s.Model = "text"
		}
		c := openai.NewClient(option.WithBaseURL(root+"/shape/"+s.ID+"/v1"), option.WithAPIKey("unused"))
		outcome := map[string]any{}
		value, err := ask(t.Context(), c, s.Model)
		var refused *openai.Error
		switch {
		case errors.As(err, &refused):
			outcome["status"], outcome["code"], outcome["message"] = refused.StatusCode, refused.Code, refused.Message
		case err != nil:
			outcome["fault"] = err.Error()
		default:
			outcome["value"] = value
		}
		line, err := json.Marshal(outcome)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("{\"shape\":%q,%s\n", s.ID, line[1:]) // an outcome is never empty
	}
}
