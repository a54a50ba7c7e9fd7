"""Which API key belongs to which host.

A workspace may come from somebody else, so it may name a well-known variable only for the host that its key is for. The
address must begin with exactly ``https://HOST/`` (or ``:443``). There are no rules about subdomains, trailing dots,
other ports or other spellings of a name, so none can be fooled. Hosts where anybody can rent a name, such as those of
cloud providers, are left out.
"""

from __future__ import annotations

OWN_HOSTS: dict[str, tuple[str, ...]] = {
    "OPENAI_API_KEY": ("api.openai.com", "eu.api.openai.com", "us.api.openai.com"),
    "ANTHROPIC_API_KEY": ("api.anthropic.com",),
    "CEREBRAS_API_KEY": ("api.cerebras.ai",),
    "COHERE_API_KEY": ("api.cohere.ai", "api.cohere.com"),
    "CO_API_KEY": ("api.cohere.ai", "api.cohere.com"),
    "DASHSCOPE_API_KEY": ("dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com"),
    "DEEPINFRA_API_KEY": ("api.deepinfra.com",),
    "DEEPINFRA_TOKEN": ("api.deepinfra.com",),
    "DEEPSEEK_API_KEY": ("api.deepseek.com",),
    "FIREWORKS_API_KEY": ("api.fireworks.ai",),
    "GEMINI_API_KEY": ("generativelanguage.googleapis.com",),
    "GROQ_API_KEY": ("api.groq.com",),
    "HF_TOKEN": ("router.huggingface.co",),
    "MISTRAL_API_KEY": ("api.mistral.ai",),
    "MOONSHOT_API_KEY": ("api.moonshot.ai", "api.moonshot.cn"),
    "NVIDIA_API_KEY": ("integrate.api.nvidia.com",),
    "OPENROUTER_API_KEY": ("openrouter.ai",),
    "PERPLEXITY_API_KEY": ("api.perplexity.ai",),
    "PPLX_API_KEY": ("api.perplexity.ai",),
    "SAMBANOVA_API_KEY": ("api.sambanova.ai",),
    "TOGETHER_API_KEY": ("api.together.xyz", "api.together.ai"),
    "XAI_API_KEY": ("api.x.ai",),
}


def is_own_host(variable: str, url: str) -> bool:
    """Whether the key in ``variable`` is meant for the host of ``url``, and is sent there encrypted."""
    return any(
        f"{url}/".startswith((f"https://{host}/", f"https://{host}:443/")) for host in OWN_HOSTS.get(variable, ())
    )
