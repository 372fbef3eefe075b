package execution

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/callgate/callgate/gateway/refuse"
	"github.com/callgate/callgate/internal/safe"
	"github.com/callgate/callgate/parser"
	"github.com/callgate/callgate/refusal"
	"github.com/callgate/callgate/tool"
	"github.com/callgate/callgate/wrapper"
)

// wrapGuarded is wrap, with its panics contained: the call has ended, and its outcome
// must be written.
func (c *Call) wrapGuarded(ctx context.Context, output tool.Result) (result wrapper.ToolResult, err error) {
	defer safe.Catch(func(panicked error) { err = refuse.AfterDispatch(refusal.Wrap, panicked) })
	return c.wrap(ctx, output)
}

// wrap is the stage wrap: the output is one strict JSON value, or text, fits the tool's output
// schema, and is what hooks leave of it.
func (c *Call) wrap(ctx context.Context, output tool.Result) (wrapper.ToolResult, error) {
	name := c.Tool().Name()
	if int64(len(output.Body)) > c.Tool().SharedRun().MaxResultBytes {
		return wrapper.ToolResult{}, refusal.New(refusal.ResultTooLarge,
			fmt.Sprintf("%s answered with more than is allowed. %s", c.WrittenName(), c.Unless("Ask it for less.")))
	}
	invalid := func(cause error) error {
		return refusal.New(refusal.InvalidResult,
			fmt.Sprintf("%s answered with something that is not a valid result, so it is not shown. %s",
				c.WrittenName(), c.Unless("Continue without it."))).WithCause(cause)
	}
	if err := c.checkOutput(output); err != nil {
		return wrapper.ToolResult{}, invalid(err)
	}
	before := output.Body
	output, err := c.Hooks().Result(ctx, output)
	if err != nil {
		return wrapper.ToolResult{}, err
	}
	if !bytes.Equal(before, output.Body) {
		if err := c.checkOutput(output); err != nil {
			return wrapper.ToolResult{}, invalid(err)
		}
	}
	var result wrapper.ToolResult
	if output.JSON {
		result, err = wrapper.Result(name, output.Body)
	} else {
		result, err = wrapper.Text(name, string(output.Body))
	}
	if err == nil && c.Metadata.Subscribed {
		result, err = result.WithSubscription(c.ID())
	}
	if err != nil {
		return wrapper.ToolResult{}, invalid(err)
	}
	if !output.JSON || wrapper.Wraps(output.Body) {
		c.Metadata.Wrapped = true
	}
	return result, nil
}

// Unless is what a model can do without the result of its call, which for one that has acted is not
// to ask for it again.
func (c *Call) Unless(advice string) string {
	if c.Tool().Effect() == "once" {
		return "It ran, so do not ask for the same again."
	}
	return advice
}

// checkOutput reads the output strictly, and builds its value only for a schema that is not
// plain, or refuses it.
func (c *Call) checkOutput(output tool.Result) error {
	raw := output.Body
	if output.JSON {
		if err := parser.CheckValue(raw, maxResultDepth); err != nil {
			return err
		}
	} else {
		if !utf8.Valid(raw) {
			return errors.New("the text is not UTF-8")
		}
		raw, _ = json.Marshal(string(raw)) // a text has no errors
	}
	if !c.Tool().HasOutputSchema() {
		return nil
	}
	decode := func() any {
		value, err := parser.ReadValue(raw, maxResultDepth)
		if err != nil {
			return err // of no type of JSON's, which is refused
		}
		return value
	}
	if faults := c.Tool().JudgeOutput(raw, decode); len(faults) > 0 {
		// Where it is not met is not said: the names on the way there may be the tool's
		// own words, which do not belong into a log.
		return fmt.Errorf("the output schema is not met: %s", faults[0].Code)
	}
	return nil
}

// maxResultDepth bounds how deep a result may nest.
const maxResultDepth = 500
