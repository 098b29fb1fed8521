"""The Feishu/Lark platform: its envelopes, cards, errors and HTTP API, and nothing of ours."""
