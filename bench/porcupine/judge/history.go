package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/anishathalye/porcupine"
)

type event struct {
	Process int             `json:"process"`
	Type    string          `json:"type"`
	F       string          `json:"f"`
	Value   json.RawMessage `json:"value"`
}

// values numbers the texts of JSON values, so that models compare integers.
type values struct {
	numbers map[string]int
	initial int
}

const (
	none  = -1 // no value: it is unknown, or there is none
	empty = -2 // a dequeue that found nothing
)

func newValues(initial json.RawMessage) *values {
	found := &values{numbers: map[string]int{}}
	found.initial = found.of(initial)
	return found
}

func (v *values) of(text json.RawMessage) int {
	if len(text) == 0 || string(text) == "null" {
		return none
	}
	if string(text) == `"empty"` {
		return empty
	}
	number, known := v.numbers[string(text)]
	if !known {
		number = len(v.numbers)
		v.numbers[string(text)] = number
	}
	return number
}

func (v *values) list(text json.RawMessage) ([]int, error) {
	var each []json.RawMessage
	if err := json.Unmarshal(text, &each); err != nil {
		return nil, err
	}
	found := make([]int, len(each))
	for place, value := range each {
		found[place] = v.of(value)
	}
	return found, nil
}

// read returns the operations of a file. One that failed did not happen. One that was not completed
// ends after all events, and its result is unknown.
func read(path, model string, values *values) ([]porcupine.Operation, error) {
	events, err := parse(path)
	if err != nil {
		return nil, err
	}
	open, failed := map[int]int{}, map[int]bool{}
	rows := []event{}
	operations := []porcupine.Operation{}
	pending := []bool{}
	for place, each := range events {
		if each.Type == "invoke" {
			open[each.Process] = len(rows)
			rows, pending = append(rows, each), append(pending, true)
			operations = append(operations, porcupine.Operation{
				ClientId: each.Process, Call: int64(place), Return: int64(len(events)),
			})
			continue
		}
		row, known := open[each.Process]
		if !known {
			continue
		}
		delete(open, each.Process)
		switch each.Type {
		case "ok":
			pending[row], operations[row].Return = false, int64(place)
			if len(each.Value) > 0 && string(each.Value) != "null" {
				rows[row].Value = each.Value
			}
		case "fail":
			failed[row] = true
		}
	}
	found := operations[:0]
	for row, operation := range operations {
		if failed[row] {
			continue
		}
		operation.Input, err = inputOf(model, rows[row], pending[row], values)
		if err != nil {
			return nil, fmt.Errorf("operation %d: %w", row, err)
		}
		found = append(found, operation)
	}
	return found, nil
}

func parse(path string) ([]event, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	found := []event{}
	decoder := json.NewDecoder(bufio.NewReaderSize(file, 1<<16))
	for decoder.More() {
		var each event
		if err := decoder.Decode(&each); err != nil {
			return nil, err
		}
		found = append(found, each)
	}
	return found, nil
}
