package api

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"clifftop/experiments/live/text"
	"clifftop/experiments/scenario"
)

// serverInfo is the server's description of itself.
type serverInfo struct {
	version string
	release string // of the engine that is imitated
	model   string
	started int64
	deploy  map[string]any
}

func infoOf(u *scenario.Setup, version string) serverInfo {
	d := &u.Scenario.Deployment
	return serverInfo{
		version: version, release: u.Pools[0].Release(), model: u.Scenario.Model, started: time.Now().Unix(),
		deploy: map[string]any{
			"tp_size": d.TensorParallelSize, "pp_size": d.PipelineParallelSize, "dp_size": d.DataParallelSize,
			"ep_size": d.ExpertParallelSize, "page_size": u.Scenario.Engine.BlockSize,
			"max_running_requests": u.Scenario.Engine.MaxNumSeqs, "random_seed": u.Scenario.Run.Seed,
		},
	}
}

// reply sends a value in JSON.
func reply(w http.ResponseWriter, x any) error {
	b, err := json.Marshal(x)
	if err == nil {
		writeJSON(w, http.StatusOK, b)
	}
	return err
}

// modelCard is an entry of the list of models.
type modelCard struct {
	ID          string   `json:"id"`
	Object      string   `json:"object"`
	Created     int64    `json:"created"`
	OwnedBy     string   `json:"owned_by"`
	Root        string   `json:"root"`
	Parent      *string  `json:"parent"`
	MaxModelLen *int32   `json:"max_model_len"`
	Permission  []string `json:"permission"`
}

func (s *Server) cards() (list []modelCard) {
	models, adapters := s.names.list()
	for _, name := range models {
		list = append(list, modelCard{ID: name, Root: s.info.model, MaxModelLen: &s.context})
	}
	for _, name := range adapters {
		list = append(list, modelCard{ID: name, Root: name, Parent: &models[0]})
	}
	for i := range list {
		list[i].Object, list[i].Created, list[i].OwnedBy = "model", s.info.started, "clifftop"
		list[i].Permission = []string{}
	}
	return list
}

// models answers GET /v1/models.
func (s *Server) models(w http.ResponseWriter, _ *http.Request, _ int32) error {
	return reply(w, map[string]any{"object": "list", "data": s.cards()})
}

// model answers GET /v1/models/NAME.
func (s *Server) model(w http.ResponseWriter, r *http.Request, _ int32) error {
	name := r.PathValue("name")
	adapter, err := s.names.find(&name)
	if err != nil {
		return err
	}
	cards := s.cards()
	for i := range cards {
		if cards[i].ID == name {
			return reply(w, &cards[i])
		}
	}
	x := cards[0]
	if x.ID = name; adapter > 0 {
		x.Root, x.Parent, x.MaxModelLen = name, &s.names.models[0], nil
	}
	return reply(w, &x)
}

// health answers whether requests can be served. The body is empty, as vLLM's.
func (s *Server) health(w http.ResponseWriter, _ *http.Request, replica int32) error {
	if s.draining.Load() || !s.replicas.Ready(replica) {
		return &failure{status: http.StatusServiceUnavailable, message: "no replica is ready"}
	}
	w.WriteHeader(http.StatusOK)
	return nil
}

func (s *Server) version(w http.ResponseWriter, _ *http.Request, _ int32) error {
	return reply(w, map[string]string{"version": s.info.version, "engine": s.info.release})
}

// load answers GET /load with the number of calls that are being answered.
func (s *Server) load(w http.ResponseWriter, _ *http.Request, _ int32) error {
	return reply(w, map[string]int64{"server_load": s.active.Load()})
}

// serverInfo answers SGLang's GET /get_server_info.
func (s *Server) serverInfo(w http.ResponseWriter, _ *http.Request, replica int32) error {
	x := map[string]any{
		"model_path": s.info.model, "tokenizer_path": s.info.model, "served_model_name": s.names.models[0],
		"context_length": s.context, "version": s.info.version, "engine": s.info.release, "status": "ready",
		"disaggregation_mode": strings.Replace(s.peers.role(replica), "both", "null", 1),
		"internal_states":     []any{map[string]any{"last_gen_throughput": 0.0}},
	}
	for key, v := range s.info.deploy {
		x[key] = v
	}
	return reply(w, x)
}

// modelInfo answers SGLang's GET /get_model_info.
func (s *Server) modelInfo(w http.ResponseWriter, _ *http.Request, _ int32) error {
	return reply(w, map[string]any{
		"model_path": s.info.model, "tokenizer_path": s.info.model, "is_generation": true, "weight_version": "default",
	})
}

// tokenizeRequest is the body of /tokenize: a prompt, or the messages of a conversation.
type tokenizeRequest struct {
	Model    *string           `json:"model"`
	Prompt   *string           `json:"prompt"`
	Special  *bool             `json:"add_special_tokens"`
	Messages []text.Message    `json:"messages"`
	Tools    []json.RawMessage `json:"tools"`
	Continue *bool             `json:"continue_final_message"`
	Strings  *bool             `json:"return_token_strs"`
}

func (s *Server) tokenize(w http.ResponseWriter, r *http.Request, _ int32) error {
	var q tokenizeRequest
	if err := s.body(w, r, &q); err != nil {
		return err
	}
	if _, err := s.names.find(q.Model); err != nil {
		return err
	}
	var tokens []uint32
	switch {
	case q.Messages != nil:
		p, err := s.conversation(q.Messages, q.Tools, is(q.Continue))
		if err != nil {
			return err
		}
		tokens = p.Tokens
	case q.Prompt == nil:
		return bad("prompt", "prompt is missing (want prompt or messages)")
	case q.Special != nil && !*q.Special:
		tokens = s.tokenizer.Encode(*q.Prompt)
	default:
		tokens = s.template.Text(*q.Prompt).Tokens
	}
	var parts []string
	if is(q.Strings) {
		for i := range tokens {
			part, err := s.decode(tokens[i : i+1])
			if err != nil {
				return bad("return_token_strs", "return_token_strs: %s", err)
			}
			parts = append(parts, part)
		}
	}
	if tokens == nil {
		tokens = []uint32{}
	}
	return reply(w, map[string]any{
		"count": len(tokens), "max_model_len": s.context, "tokens": tokens, "token_strs": parts,
	})
}

type detokenizeRequest struct {
	Model  *string `json:"model"`
	Tokens *idList `json:"tokens"`
}

func (s *Server) detokenize(w http.ResponseWriter, r *http.Request, _ int32) error {
	var q detokenizeRequest
	if err := s.body(w, r, &q); err != nil {
		return err
	}
	if _, err := s.names.find(q.Model); err != nil {
		return err
	}
	if q.Tokens == nil {
		return bad("tokens", "tokens is missing (want a list of token IDs)")
	}
	prompt, err := s.decode(*q.Tokens)
	if err != nil {
		return bad("tokens", "%s", err)
	}
	return reply(w, map[string]string{"prompt": prompt})
}

// errNoText means that the tokenizer cannot decode.
type errNoText struct{}

func (errNoText) Error() string {
	return "estimated token IDs have no text (want a server with the model's tokenizer.json)"
}

// decode returns the text of token IDs.
func (s *Server) decode(ids []uint32) (string, error) {
	if d, ok := s.tokenizer.(interface{ Decode(ids []uint32) string }); ok {
		return d.Decode(ids), nil
	}
	return "", errNoText{}
}
