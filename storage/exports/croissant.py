"""Metadata of a folder of Parquet files in MLCommons' format Croissant 1.0, as JSON-LD.

Each table is a `FileObject` with its hash, and a `RecordSet` with a field for each column. Loaders such as
`mlcroissant` use it to read the rows, and hubs to index the folder. Source: the specification at
docs.mlcommons.org/croissant.
"""

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stepsight.core.files.arrow import load_pyarrow

FILE = "croissant.json"

_VERSION = "http://mlcommons.org/croissant/1.0"
# Terms of Croissant's vocabulary that a reader resolves by the context.
_TERMS = (
    "column", "extract", "field", "fileObject", "fileProperty", "fileSet", "format", "includes", "isLiveDataset",
    "jsonPath", "key", "md5", "parentField", "path", "recordSet", "references", "regex", "repeated", "replace",
    "separator", "source", "subField", "transform", "citeAs", "equivalentProperty", "samplingRate",
)  # fmt: skip
_CONTEXT: Mapping[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "sc": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "dct": "http://purl.org/dc/terms/",
    "conformsTo": "dct:conformsTo",
    "data": {"@id": "cr:data", "@type": "@json"},
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    **{term: f"cr:{term}" for term in _TERMS},
}


def describe_folder(folder: Path, title: str, tables: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """Return the metadata of a folder with a Parquet file `data/NAME.parquet` for each table.

    `tables` maps the names of tables to the descriptions of their columns, in which a key may name several columns.
    Raises `UserError` if pyarrow is missing.
    """
    return {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": _VERSION,
        "name": title,
        "description": f"{title}, written by StepSight. README.md says what it holds.",
        "distribution": [_file(folder, name) for name in tables],
        "recordSet": [_record_set(folder, name, columns) for name, columns in tables.items()],
    }


def _path(name: str) -> str:
    return f"data/{name}.parquet"


def _file(folder: Path, name: str) -> dict[str, Any]:
    path = folder / _path(name)
    with open(path, "rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    return {
        "@type": "cr:FileObject",
        "@id": f"{name}-file",
        "name": f"{name}-file",
        "contentUrl": _path(name),
        "contentSize": f"{path.stat().st_size} B",
        "encodingFormat": "application/x-parquet",
        "sha256": digest,
    }


def _record_set(folder: Path, name: str, columns: Mapping[str, str]) -> dict[str, Any]:
    about = {column: what for names, what in columns.items() for column in re.split(r",\s*", names)}
    schema = load_pyarrow().parquet.read_schema(folder / _path(name))
    fields = [_field(name, column.name, column.type, about.get(column.name, "")) for column in schema]
    return {"@type": "cr:RecordSet", "@id": name, "name": name, "field": fields}


def _field(table: str, column: str, type: Any, about: str) -> dict[str, Any]:
    is_list = hasattr(type, "value_type") and not str(type).startswith("dictionary")
    source = {"fileObject": {"@id": f"{table}-file"}, "extract": {"column": column}}
    return {
        "@type": "cr:Field",
        "@id": f"{table}/{column}",
        "name": column,
        "dataType": _data_type(str(getattr(type, "value_type", type))),
        "source": source,
        **({"description": about} if about else {}),
        **({"repeated": True} if is_list else {}),
    }


def _data_type(type: str) -> str:
    if type == "bool":
        return "sc:Boolean"
    if "int" in type:
        return "sc:Integer"
    return "sc:Float" if type in ("float", "double", "halffloat") else "sc:Text"
