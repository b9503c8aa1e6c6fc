"""Files of the Hugging Face hub: from the local cache where they are there, a clear error at once where they are not.

`huggingface_hub` does the work, with its cache, its offline mode (`HF_HUB_OFFLINE=1`), its endpoint (`HF_ENDPOINT`) and
its tokens (`HF_TOKEN`, or those of `hf auth login`). What is added here: the hub is asked once, without retries, before
anything is downloaded, so that a machine without a network says so at once, and not after half a minute of attempts.
"""

from __future__ import annotations

from tokbatch.errors import NOT_THERE, InputError

FILE = "tokenizer.json"
TIMEOUT_SECONDS = 10


def tokenizer_file(name: str, revision: str | None = None, token: str | bool | None = None) -> str:
    """Give the path of a repository's tokenizer.json in the local cache, downloaded where it was not there.

    `token` is an access token; True asks for the one that is saved, False for none. Raises `InputError`.
    """
    from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url, try_to_load_from_cache
    from huggingface_hub.errors import (
        EntryNotFoundError,
        GatedRepoError,
        HFValidationError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    code: str | None = NOT_THERE
    try:
        cached = try_to_load_from_cache(name, FILE, revision=revision)
        if isinstance(cached, str):
            return cached
        get_hf_file_metadata(hf_hub_url(name, FILE, revision=revision), token=token, timeout=TIMEOUT_SECONDS)
        return str(hf_hub_download(name, FILE, revision=revision, token=token))
    except HFValidationError:
        raise InputError(
            "no such file or folder, and no name that a repository of the hub can have",
            where=name or "''",
            hint="give a tokenizer.json, a folder with one, or a name such as organisation/name",
            code=code,
        ) from None
    except OfflineModeIsEnabled:
        message, hint = (
            "it is not in the local cache, and offline mode is on",
            "unset HF_HUB_OFFLINE once, or give a file",
        )
    except GatedRepoError:
        message, hint = (
            "the repository is gated",
            "ask for access on its page, then log in by `hf auth login` or HF_TOKEN",
        )
    except RepositoryNotFoundError:
        message = "the hub has no such repository, or it is private"
        hint = "check the name; for a private one, log in by `hf auth login` or HF_TOKEN"
    except RevisionNotFoundError:
        message, hint = f"the repository has no revision {revision!r}", "give a branch, a tag or a commit of it"
    except EntryNotFoundError:
        message = f"the repository has no {FILE}"
        hint = "save the fast tokenizer of transformers: `AutoTokenizer.from_pretrained(...).save_pretrained(folder)`"
    except Exception as error:  # whatever the HTTP library of the day raises
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        code = None
        message = f"it is not in the local cache, and the hub cannot be asked: {reason}"
        hint = "check the network, or give a local folder or file"
    raise InputError(f"no tokenizer: {message}", where=name, hint=hint, code=code) from None
